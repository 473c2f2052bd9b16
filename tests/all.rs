//! Tests of the command line, through the real binary.

mod all {
    mod help;
    mod identity;
    mod killed;
    mod outcome;
    mod pipe;
    mod record;
    mod support;
    mod wrong_input;
}
