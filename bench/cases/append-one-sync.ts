/** A durable append, against a bare write and sync of the same bytes; and never more than one sync an append. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewRecord } from '@tidemark/core/engine/ports'
import { sampleRecord } from '@tidemark/core/testing'
import { createFileJournal, type FileJournal } from '../../packages/tidemark/src/storage/file-journal.ts'
import { type FileSystem, nodeFileSystem } from '../../packages/tidemark/src/storage/file-system.ts'
import type { BenchCase } from '../harness/bench-case.ts'

const APPENDS = 50
const TEXT = 'x'.repeat(1_500)

export const benchCase: BenchCase = {
  name: 'append-one-sync',
  compares: 'a durable append of 2 records with a bare write and sync; at most one sync an append',
  bound: { atMost: 2 },
  async prepare() {
    const home = await mkdtemp(join(tmpdir(), 'tidemark-bench-'))
    const counted = countingSyncs()
    const journal = createFileJournal({ home, files: counted.files })
    await checkSyncs(journal, counted)
    const bare = await open(join(home, 'bare'), 'a')
    const bytes = Buffer.from(JSON.stringify(records(0)))
    let position = 0
    return {
      async subject() {
        position = await appended(journal, 'timed', position)
      },
      async baseline() {
        await bare.write(bytes)
        await bare.datasync()
      },
      calls: { subject: 10, baseline: 10 },
      async close() {
        await bare.close()
        await journal.close()
        await rm(home, { recursive: true, force: true })
      },
    }
  },
}

function records(position: number): readonly NewRecord[] {
  return [sampleRecord(`a${position}`, TEXT), sampleRecord(`b${position}`, TEXT)]
}

async function appended(journal: FileJournal, session: string, after: number): Promise<number> {
  const outcome = await journal.append(session, after, records(after))
  if (!outcome.ok) throw new Error(`the append was refused: ${outcome.reason}`)
  return outcome.position
}

interface Counted {
  readonly files: FileSystem
  syncs: number
}

/** Node's files, their syncs counted. Directories are synced when a session is opened, not when it is appended to. */
function countingSyncs(): Counted {
  const counted: Counted = { files: { ...nodeFileSystem, open: openCounted }, syncs: 0 }
  async function openCounted(...given: Parameters<FileSystem['open']>): ReturnType<FileSystem['open']> {
    const file = await nodeFileSystem.open(...given)
    if (file === null) return null
    const sync = () => {
      counted.syncs += 1
      return file.sync()
    }
    return { ...file, sync }
  }
  return counted
}

async function checkSyncs(journal: FileJournal, counted: Counted): Promise<void> {
  for (let count = 0; count < APPENDS; count += 1) await appended(journal, 'one-by-one', count * 2)
  const alone = counted.syncs
  await Promise.all(Array.from({ length: APPENDS }, (_, count) => appended(journal, 'together', count * 2)))
  const together = counted.syncs - alone
  console.error(`  syncs for ${APPENDS} appends: ${alone} one by one, ${together} together`)
  if (alone > APPENDS || together > APPENDS / 2)
    throw new Error(`${alone} and ${together} syncs for ${APPENDS} appends`)
}
