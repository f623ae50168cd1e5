//! Lines of a file list: a file, or a folder with the number of files in it.

/// The line for a folder whose files are not listed: `src/parser/ (12 files)`. The folder ends with a
/// slash.
pub fn folder_line(folder: &str, files: usize) -> String {
    let word = if files == 1 { "file" } else { "files" };
    format!("{folder} ({files} {word})")
}

/// How many files a line of a file list stands for, if it is one of [`folder_line`].
pub fn files_of_folder_line(line: &str) -> Option<usize> {
    let (_, count) = line.rsplit_once("/ (")?;
    let number = count.strip_suffix(" files)").or_else(|| count.strip_suffix(" file)"))?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_line_tells_its_files_and_a_path_does_not() {
        for files in [0, 1, 2, 60_000] {
            assert_eq!(files_of_folder_line(&folder_line("a/b/", files)), Some(files));
        }
        for path in ["a/b", "a (2 files)", "a/b (2 files)", "a/ (x files)", "a/ (2 files).md"] {
            assert_eq!(files_of_folder_line(path), None, "{path}");
        }
    }
}
