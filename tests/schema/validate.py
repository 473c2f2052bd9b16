"""validate.py SCHEMA FILE...: prints a line for each error of each TOML or JSON file."""

import json
import sys
import tomllib

import jsonschema

with open(sys.argv[1], "rb") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        document = json.load(file) if path.endswith(".json") else tomllib.load(file)
    for error in validator.iter_errors(document):
        place = ".".join(str(part) for part in error.absolute_path)
        print(f"{path}: {place}: {error.message}")
