// Mutants of scripts/mutate.mjs that no test should kill: { file, before, after, why }, as the script prints them, and
// `within` where the same line occurs in several functions.
export default []
