/** A process of its own: runs one act on a session and kills itself before, within or after one file operation. */
import { writeSync } from 'node:fs'
import { createFileJournal } from 'tidemark'
import { type FileSystem, nodeFileSystem, type OpenFile } from 'tidemark/internal'
import { createActHost, INTERRUPTIBLE_ACTS, type StartedSession } from './interruptible-acts.ts'

export interface KillInput {
  readonly home: string
  readonly act: string
  readonly at: number
  /** File operations that succeed; the next one is the last. */
  readonly operations: number
  readonly moment: 'before' | 'within' | 'after'
}

const input: KillInput = JSON.parse(process.argv[2] ?? '{}')
const done: string[] = []

/** Writes synchronously, so that no line is lost when the process is killed. */
function print(line: string): void {
  writeSync(1, `${line}\n`)
}

function killSelf(): void {
  process.kill(process.pid, 'SIGKILL')
}

type Operation = Exclude<keyof FileSystem | keyof OpenFile, 'removeAtExit' | 'close'>

async function runOperation<T>(
  kind: Operation,
  work: () => Promise<T>,
  partly: () => Promise<unknown> = async () => {},
): Promise<T> {
  done.push(kind)
  const isLast = done.length > input.operations
  if (isLast && input.moment === 'within') await partly()
  if (isLast && input.moment !== 'after') killSelf()
  const result = await work()
  if (isLast) killSelf()
  return result
}

function watchFile(file: OpenFile): OpenFile {
  return {
    read: (into, position) => runOperation('read', () => file.read(into, position)),
    append: (bytes) =>
      runOperation(
        'append',
        () => file.append(bytes),
        () => file.append(bytes.subarray(0, bytes.length >> 1)),
      ),
    sync: () => runOperation('sync', () => file.sync()),
    facts: () => runOperation('facts', () => file.facts()),
    close: () => file.close(),
  }
}

const files: FileSystem = {
  open: async (path, purpose) => {
    const file = await runOperation('open', () => nodeFileSystem.open(path, purpose))
    return file === null ? null : watchFile(file)
  },
  facts: (path) => runOperation('facts', () => nodeFileSystem.facts(path)),
  rename: (from, to) => runOperation('rename', () => nodeFileSystem.rename(from, to)),
  link: (from, to) => runOperation('link', () => nodeFileSystem.link(from, to)),
  remove: (path) => runOperation('remove', () => nodeFileSystem.remove(path)),
  makeDirectory: (path) => runOperation('makeDirectory', () => nodeFileSystem.makeDirectory(path)),
  syncDirectory: (path) => runOperation('syncDirectory', () => nodeFileSystem.syncDirectory(path)),
  list: (path) => runOperation('list', () => nodeFileSystem.list(path)),
  touch: (path, at) => runOperation('touch', () => nodeFileSystem.touch(path, at)),
  removeAtExit: (path, content) => nodeFileSystem.removeAtExit(path, content),
}

const one = INTERRUPTIBLE_ACTS.find(({ name }) => name === input.act)
if (one === undefined) throw new Error(`there is no act ${input.act}`)
const started: StartedSession = { at: input.at, batches: [], records: [] }
const journal = createFileJournal({ home: input.home, files })
const end = await one.act(createActHost(one, started, journal))
print(end === null || end.ok ? 'told' : `refused ${JSON.stringify(end)}`)
print(`operations ${done.join(',')}`)
