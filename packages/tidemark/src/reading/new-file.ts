/** A file that is there whole or not at all, and never in the place of another: written aside, then given its name. */
import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { TidemarkError } from '@tidemark/core'
import { errorCode, type FilePort, type OpenFile } from '../files/file-port.ts'
import { ioFailed } from '../files/io-failed.ts'
import { appendAll } from '../files/whole-file.ts'

export interface NewFile {
  write(text: string): Promise<void>
  /** Gives it its name; false where that is taken. */
  commit(): Promise<boolean>
  /** Leaves nothing behind. Harmless after `commit`. */
  discard(): Promise<void>
}

/** A name that ends in `.gz` gets a packed file. */
export async function createNewFile(files: FilePort, path: string): Promise<NewFile> {
  const draft = join(dirname(path), `.draft-${randomUUID()}`)
  const failed = (error: unknown): never => {
    throw ioFailed(`write ${path}`, renamed(error, draft, path), { path })
  }
  const file =
    (await files.open(draft, 'create').catch(failed)) ?? failed(new Error(`${draft} is there already`))
  let isOpen = true
  async function close(): Promise<void> {
    if (isOpen) await file.close()
    isOpen = false
  }
  return {
    write: (text) => append(file, path, text).catch(failed),
    async commit() {
      await file.sync().then(close).catch(failed)
      return await named(files, draft, path).catch(failed)
    },
    async discard() {
      await close()
      await files.remove(draft)
    },
  }
}

/** Nobody knows the draft: what the system says of it is said of the file that was asked for. */
function renamed(error: unknown, draft: string, path: string): unknown {
  if (!(error instanceof Error) || error instanceof TidemarkError) return error
  return new Error(error.message.replaceAll(draft, path), { cause: error })
}

async function append(file: OpenFile, path: string, text: string): Promise<void> {
  if (text !== '') await appendAll(file, path.endsWith('.gz') ? gzipSync(text) : Buffer.from(text))
}

/** File systems without hard links. */
const LINKLESS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function named(files: FilePort, draft: string, path: string): Promise<boolean> {
  try {
    if (!(await files.link(draft, path))) return false
  } catch (error) {
    if (!LINKLESS.has(errorCode(error))) throw error
    if ((await files.facts(path)) !== null) return false
    await files.rename(draft, path)
  }
  await files.syncDirectory(dirname(path))
  return true
}
