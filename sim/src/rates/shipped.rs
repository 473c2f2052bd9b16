//! The tables in `scenarios/data/rates`, within the program: they work in any folder.

macro_rules! tables {
    ($($name:literal)*) => {
        /// Names and texts, in order.
        pub(super) const TABLES: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../scenarios/data/rates/", $name, ".csv")),
        )),*];
    };
}

tables! {
    "qwen3-30b-a3b-h100-sglang-tp2"
    "qwen3-30b-a3b-h100-vllm-tp2"
    "qwen3-30b-a3b-h200-sglang-tp2"
    "qwen3-30b-a3b-h200-vllm-tp2"
    "qwen3-32b-h100-sglang-tp4"
    "qwen3-32b-h100-vllm-tp4"
    "qwen3-32b-h200-sglang-tp4"
    "qwen3-32b-h200-vllm-tp4"
    "qwen3-8b-h100-sglang-tp1"
    "qwen3-8b-h100-vllm-tp1"
    "qwen3-8b-h200-sglang-tp1"
    "qwen3-8b-h200-vllm-tp1"
}
