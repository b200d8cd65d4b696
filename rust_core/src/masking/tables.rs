//! Vocabulary with the masks of each of its languages. Token tables are loaded or built on demand.

use crate::language::compiled::Language;
use crate::masking::cache::{MaskCache, lock};
use crate::masking::table::file::Spanner;
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// A vocabulary with the masks of each of its languages.
#[derive(Debug)]
pub struct Tables {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    folder: Option<PathBuf>,
    masks: Mutex<FxHashMap<u128, Slot>>,
}

/// Masks, made on demand.
type Slot = Arc<OnceLock<Arc<MaskCache>>>;

impl Tables {
    /// No tables yet. Built tables are saved in `folder`.
    #[must_use]
    pub fn new(vocabulary: Vocabulary, folder: Option<PathBuf>) -> Self {
        Self { vocabulary, folder, masks: Mutex::default() }
    }

    /// The masks of a language. Its table is loaded, or built, when it is first asked for.
    #[must_use]
    pub fn masks(&self, language: &Language) -> Arc<MaskCache> {
        let slot = lock(&self.masks).entry(language.fingerprint).or_default().clone();
        slot.get_or_init(|| Arc::new(self.prepare(language))).clone()
    }

    fn prepare(&self, language: &Language) -> MaskCache {
        let clock = Instant::now();
        let name = format!("{:032x}-{:032x}.spanner", language.fingerprint, self.vocabulary.fingerprint());
        let path = self.folder.as_ref().map(|folder| folder.join(name));
        if let Some(path) = &path
            && let Ok(spanner) = Spanner::load(path, language, &self.vocabulary)
        {
            return MaskCache::new(spanner, &self.vocabulary, true, clock.elapsed().as_secs_f64());
        }
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let spanner = Spanner::build(language, &self.vocabulary, threads);
        if let Some(path) = &path {
            // Without the file the table is only built again next time.
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = spanner.save(path);
        }
        MaskCache::new(spanner, &self.vocabulary, false, clock.elapsed().as_secs_f64())
    }
}
