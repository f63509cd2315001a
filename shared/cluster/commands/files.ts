/** A file in the folder of a session or of a one-shot run. */
export type FolderFile = { path: string; bytes: number; sha256: string; modified_ms: number }

/** `after`: the path of the last file of the page before. */
export type FolderPage = { limit: number; after?: string }
export type FolderFiles = { files: FolderFile[]; has_more: boolean }

/** A part of a file, whose size and time say whether it is still the same. */
export type FilePiece = { base64: string; bytes: number; modified_ms: number }
