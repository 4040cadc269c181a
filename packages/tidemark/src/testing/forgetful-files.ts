/**
 * A file port in memory that keeps apart what was written and what was synced. When the machine goes down,
 * content not synced is lost or torn at any byte, and so are names whose directory was not synced.
 */
import type { FilePort } from '../files/file-port.ts'
import { type Interference, type OperationKind, Operations, systemError } from './file-operations.ts'
import { ForgetfulNames, type NameChange } from './forgetful-names.ts'
import { forget, openNode, type UnsyncedWrite } from './forgetful-node.ts'

export interface ForgetfulFiles extends FilePort {
  /** How often each operation was begun. */
  readonly counts: Readonly<Record<OperationKind, number>>
  /** Asked before every operation from now on; what it answers happens instead, or in part. */
  interfere(interference: Interference | null): void
  /** The machine goes down and comes up again with what the disk has. Files opened before are of no use. */
  crash(kept?: KeptByChance): void
}

/** What happens to be on the disk though nobody synced it. Nothing, unless it says so. */
export interface KeptByChance {
  /** How many of its bytes, from the first; true for all. */
  write?(write: UnsyncedWrite): number | boolean
  name?(change: NameChange): boolean
}

export interface ForgetfulFilesOptions {
  /** Directories that were there before; `/` always is. */
  readonly directories?: readonly string[]
  /** Tells when a file was changed; the machine's time unless given. */
  readonly now?: () => number
}

export function createForgetfulFiles({
  directories = [],
  now = Date.now,
}: ForgetfulFilesOptions = {}): ForgetfulFiles {
  const operations = new Operations()
  const names = new ForgetfulNames(['/', ...directories])
  return {
    counts: operations.counts,
    interfere: (interference) => operations.interfere(interference),
    crash(kept = {}) {
      operations.restart()
      names.crash((change) => kept.name?.(change) ?? false)
      for (const [path, node] of names.files())
        forget(node, (write) => kept.write?.({ ...write, path }) ?? false)
    },
    async open(path, purpose) {
      operations.begin('open', path)
      const node = purpose === 'create' ? names.create(path, now()) : names.node(path)
      return node === null ? null : openNode(node, { path, purpose, now, operations })
    },
    async facts(path) {
      operations.begin('facts', path)
      return names.facts(path)
    },
    async rename(from, to) {
      operations.begin('rename', from)
      names.rename(from, to)
    },
    async link(from, to) {
      operations.begin('link', to)
      return names.link(from, to)
    },
    async remove(path) {
      operations.begin('remove', path)
      return names.remove(path)
    },
    async makeDirectory(path) {
      operations.begin('makeDirectory', path)
      return names.makeDirectory(path, now())
    },
    async syncDirectory(path) {
      operations.begin('syncDirectory', path)
      names.sync(path)
    },
    async list(path) {
      operations.begin('list', path)
      return names.within(path)
    },
    async touch(path, atMs) {
      operations.begin('touch', path)
      const node = names.node(path)
      if (node === null) throw systemError('ENOENT', path)
      node.modifiedMs = atMs
    },
    removeAtExit: () => () => {},
  }
}
