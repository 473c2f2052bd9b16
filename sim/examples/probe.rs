#![allow(clippy::all, missing_docs, clippy::unwrap_used, clippy::disallowed_types, clippy::expect_used,clippy::panic)]
use headway_shared::config::Layers;
use headway_sim::{run::{simulate, RunOptions}, scenario::Scenario};
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut case = None;
    let mut layers = Layers::new().toml(&path, text);
    let mut full = false;
    for a in args { if let Some(c) = a.strip_prefix("case:") { case = Some(c.to_owned()) } else if a == "full" { full = true } else { layers = layers.set(a) } }
    let (mut s, w) = match Scenario::load(&layers, std::path::Path::new(&path).parent().unwrap()) { Ok(x) => x, Err(e) => { println!("{e}"); return } };
    print!("{w}");
    if let Some(c) = case { let c = s.cases.iter().find(|k| k.name == c).unwrap().clone(); s = match s.with_sets(&c.set) { Ok(x) => x.0, Err(e) => {println!("{e}"); return} }; }
    let t = std::time::Instant::now();
    let r = simulate(&s, 0, RunOptions { max_inputs: std::env::var("MAX").ok().map_or(0, |m| m.parse().unwrap()), ..RunOptions::default() });
    let dt = t.elapsed().as_secs_f64();
    let r = match r { Ok(r) => r, Err(headway_sim::run::RunFailure::Core{at,error,result}) => { println!("FAILED {at} {error}"); *result } Err(e) => { println!("{e}"); return } };
    println!("{:?} end {} inputs {} digest {} cpu {dt:.3}s  {:.2}M inputs/s", r.ended, r.end, r.inputs, r.digest, r.inputs as f64/dt/1e6);
    for (m, v) in r.summary.values() { if full || ["steps_per_hour","staleness_head_mean","staleness_head_p99","staleness_head_max","trained_samples_per_hour","serving_idle_share","trainer_idle_share","judge_idle_share"].contains(&m.name) { println!("{:40} {:?}", m.name, v); } }
}
