//! Languages of texts, as numbers.

/// Number of a language.
pub(crate) type Language = u32;

/// Names of languages, and the suffixes of their files.
#[derive(Default)]
pub(crate) struct Languages {
    names: Vec<String>,
    suffixes: Vec<(String, String)>,
}

impl Languages {
    /// Name the languages of suffixes, the longest of which counts.
    pub(crate) fn name_suffixes(&mut self, suffixes: &[(String, String)]) {
        for (suffix, language) in suffixes {
            self.suffixes.retain(|(known, _)| known != suffix);
            self.suffixes.push((suffix.clone(), language.clone()));
        }
        self.suffixes.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
    }

    /// Return the name of a document's language: the given one, or that of its suffix, or the suffix itself.
    fn name<'n>(&'n self, key: &'n str, language: &'n str) -> &'n str {
        if !language.is_empty() {
            return language;
        }
        if let Some((_, name)) = self.suffixes.iter().find(|(suffix, _)| key.ends_with(suffix.as_str())) {
            return name;
        }
        let file = key.rsplit(['/', '\\']).next().unwrap_or(key);
        file.rfind('.').map_or("", |at| &file[at..])
    }

    /// Return the number of a document's language; None where no document is in it.
    pub(crate) fn find(&self, key: &str, language: &str) -> Option<Language> {
        let name = self.name(key, language);
        self.names.iter().position(|known| known == name).map(|at| at as Language)
    }

    /// Return the number of a document's language, a new one where no document is in it yet.
    pub(crate) fn number(&mut self, key: &str, language: &str) -> Language {
        if let Some(known) = self.find(key, language) {
            return known;
        }
        self.names.push(self.name(key, language).to_string());
        (self.names.len() - 1) as Language
    }
}

#[cfg(test)]
mod tests {
    use super::Languages;

    #[test]
    fn a_given_language_overrides_the_suffix() {
        let mut languages = Languages::default();
        languages.name_suffixes(&[(".py".into(), "python".into()), (".d.py".into(), "other".into())]);
        let python = languages.number("/p/a.py", "");
        assert_eq!(languages.find("untitled:1", "python"), Some(python));
        assert_ne!(languages.number("/p/a.d.py", ""), python);
        assert_eq!(languages.number("/p.x/a", ""), languages.number("b", ""));
        assert_eq!(languages.find("/p/a.rs", ""), None);
        assert_eq!(languages.number("/p/a.rs", ""), languages.number("/q/b.rs", ""));
    }
}
