//! The page of a recorded run.

use std::path::Path;

use headway_shared::config::keys::sections_toml;
use headway_sim::diagnose::Evidence;
use headway_sim::report::about::About;
use headway_sim::report::csv::Csv;
use headway_sim::report::folder::Folder;
use headway_sim::report::html::{self, Live};
use headway_sim::report::plot::Picture;

use crate::failure::Failure;
use crate::{outcome, repeat, source};

/// The page of a record. `steps`: the table of its train steps, where there is one beside it.
pub(crate) fn of_record(
    record: &Path,
    steps: Option<&Csv>,
    pictures: &[Picture],
) -> Result<String, Failure> {
    let run = source::open(record)?;
    let evidence = Evidence::of_run(&*run).map_err(|error| source::wrong(record, &error))?;
    let configuration =
        evidence.config.as_ref().map_or_else(String::new, |config| sections_toml(config, "", &[]));
    let command = repeat::command("plot", vec![repeat::path(record)]);
    let about = About { command, configuration, ..About::default() };
    Ok(html::of_live(&Live { evidence: &evidence, steps, about: &about }, pictures))
}

/// Draws all that a record has into a folder; says in words where.
pub(crate) fn draw(record: &Path, out: &Path) -> Result<String, Failure> {
    #[cfg(feature = "live")]
    {
        let unreadable = |error| Failure::unreadable(record, &error);
        if headway_runtime::store::is_database(record).map_err(unreadable)? {
            return crate::steps::write(record, out);
        }
    }
    let page = of_record(record, None, &[])?;
    let unwritable = |error| Failure::unwritable(out, &error);
    let mut folder = Folder::open(out).map_err(unwritable)?;
    folder.write(html::FILE, page.as_bytes()).map_err(unwritable)?;
    outcome::commit(folder, out)
}
