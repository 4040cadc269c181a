/**
 * The few calls on files that the journal and the blobs need, as a plain interface: the real one is Node's,
 * and `tidemark/testing` has one that forgets what was not synced. What is expected (there is no such file,
 * there is one already) is a value; anything else throws the system's error with its `code`.
 */
export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other'
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** The same for as long as it is the same file, under whatever name. */
  readonly identity: string
}

export interface DirectoryEntry {
  readonly name: string
  readonly kind: FileFacts['kind']
}

export interface OpenFile {
  /** Fills `into` with the bytes from `position` on; tells how many there were, 0 at the end. */
  read(into: Uint8Array, position: number): Promise<number>
  /** Writes behind the last byte; tells how many bytes were taken, perhaps fewer than given. */
  append(bytes: Uint8Array): Promise<number>
  /** When it returns, the content is on the disk. Its name need not be: see `syncDirectory`. */
  sync(): Promise<void>
  facts(): Promise<FileFacts>
  close(): Promise<void>
}

/** `create` makes a new file, readable by its owner alone, and opens it to append. */
export type OpenPurpose = 'read' | 'append' | 'create'

export interface FilePort {
  /** Null where there is no such file; for `create`, where the name is taken. Never follows a symbolic link. */
  open(path: string, purpose: OpenPurpose): Promise<OpenFile | null>
  /** Of the name itself: a symbolic link is `other`. Null where there is none. */
  facts(path: string): Promise<FileFacts | null>
  /** Replaces what has the name `to`, in one step. */
  rename(from: string, to: string): Promise<void>
  /** A second name for a file; false where `to` is taken. */
  link(from: string, to: string): Promise<boolean>
  /** False where there was no such file. */
  remove(path: string): Promise<boolean>
  /** One directory, for its owner alone; false where there is one. The directory above it must be there. */
  makeDirectory(path: string): Promise<boolean>
  /** When it returns, the names in the directory are on the disk. */
  syncDirectory(path: string): Promise<void>
  /** In no order; empty where there is no such directory. */
  list(path: string): Promise<readonly DirectoryEntry[]>
  /** Sets the time of the last change. */
  touch(path: string, atMs: number): Promise<void>
  /** When the process ends, removes the file if it still holds `content`. The answer takes that back. */
  removeAtExit(path: string, content: string): () => void
}

/** The `code` of a system error, or an empty string. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
