//! The tables in `scenarios/data/rates`, within the program: they work in any folder.

macro_rules! tables {
    ($($name:literal)*) => {
        /// Names and texts.
        pub(super) const TABLES: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../scenarios/data/rates/", $name, ".csv")),
        )),*];
    };
}

tables! {
    "qwen3-8b-h100-vllm-tp1"
}
