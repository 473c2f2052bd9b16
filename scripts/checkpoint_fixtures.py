"""Writes the tiny checkpoints of runtime/tests/checkpoints with transformers, and what it computes with
them: target/vllm/bin/python scripts/checkpoint_fixtures.py runtime/tests/checkpoints

Each has random weights: two layers of width 16 and a byte-level tokenizer of 300 tokens. `expected.json`
holds a conversation as the template renders it, its token ids, and the logits behind the last tokens.
"""

import json
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers import LlamaConfig, Qwen2Config, Qwen3Config

SIZES = dict(
    vocab_size=300,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    eos_token_id=1,
    bos_token_id=None,
    pad_token_id=None,
)
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
# Biases; norms of heads with a head size that is no quotient, tied, in shards; frequencies of Llama 3.1,
# in bfloat16.
FAMILIES = {
    "qwen2": (Qwen2Config(**SIZES, rope_theta=5000.0), torch.float32, "1GB"),
    "qwen3": (Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True), torch.float32, "12KB"),
    "llama": (LlamaConfig(**SIZES, rope_parameters=LLAMA3), torch.bfloat16, "1GB"),
}
TEMPLATE = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
MESSAGES = [
    {"role": "system", "content": "Answer shortly."},
    {"role": "user", "content": " What's 12 + 30?\n\tSay naïve ✓ too. "},
]


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZES["vocab_size"],
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["What is the answer to what you say?", "Answer shortly."], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    fast.chat_template = TEMPLATE
    return fast


def expected(place):
    """What transformers says of a checkpoint, read back."""
    spells = AutoTokenizer.from_pretrained(place)
    text = spells.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    ids = spells(text, add_special_tokens=False)["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    return {
        "messages": MESSAGES,
        "text": text,
        "ids": ids,
        # Rounding to 7 digits is far below what is compared.
        "logits": [[round(x, 7) for x in row] for row in logits[-4:].tolist()],
    }


def main(root):
    for name, (config, kind, shard) in FAMILIES.items():
        place = root / name
        place.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            # Nothing may be 0 or 1: what is left out would not be seen.
            for tensor in model.parameters():
                tensor.normal_(mean=1.0 if tensor.ndim == 1 else 0.0, std=0.3)
        model.to(kind).save_pretrained(place, max_shard_size=shard)
        tokenizer().save_pretrained(place)
        for file in place.iterdir():
            file.chmod(0o644)
        (place / "expected.json").write_text(json.dumps(expected(place)) + "\n")


main(pathlib.Path(sys.argv[1]))
