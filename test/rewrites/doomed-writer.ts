/** A process of its own that does one act to a session and kills itself at one operation on the disk, before it, in it or after it. */
import { writeSync } from 'node:fs'
import { createFileJournal, type FilePort, nodeFiles, type OpenFile } from 'tidemark'
import { actHost, CUT_ACTS, type StartedSession } from './started-sessions.ts'

export interface Doom {
  readonly home: string
  readonly act: string
  readonly at: number
  /** Operations that still work; the next one is the last. */
  readonly operations: number
  readonly moment: 'before' | 'within' | 'after'
}

const doom: Doom = JSON.parse(process.argv[2] ?? '{}')
const done: string[] = []

/** At once, so that nothing said is lost with the process. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

type Operation = Exclude<keyof FilePort | keyof OpenFile, 'removeAtExit' | 'close'>

async function doomed<T>(
  kind: Operation,
  work: () => Promise<T>,
  partly: () => Promise<unknown> = async () => {},
): Promise<T> {
  done.push(kind)
  const isLast = done.length > doom.operations
  if (isLast && doom.moment === 'within') await partly()
  if (isLast && doom.moment !== 'after') die()
  const result = await work()
  if (isLast) die()
  return result
}

function doomedFile(file: OpenFile): OpenFile {
  return {
    read: (into, position) => doomed('read', () => file.read(into, position)),
    append: (bytes) =>
      doomed(
        'append',
        () => file.append(bytes),
        () => file.append(bytes.subarray(0, bytes.length >> 1)),
      ),
    sync: () => doomed('sync', () => file.sync()),
    facts: () => doomed('facts', () => file.facts()),
    close: () => file.close(),
  }
}

const files: FilePort = {
  open: async (path, purpose) => {
    const file = await doomed('open', () => nodeFiles.open(path, purpose))
    return file === null ? null : doomedFile(file)
  },
  facts: (path) => doomed('facts', () => nodeFiles.facts(path)),
  rename: (from, to) => doomed('rename', () => nodeFiles.rename(from, to)),
  link: (from, to) => doomed('link', () => nodeFiles.link(from, to)),
  remove: (path) => doomed('remove', () => nodeFiles.remove(path)),
  makeDirectory: (path) => doomed('makeDirectory', () => nodeFiles.makeDirectory(path)),
  syncDirectory: (path) => doomed('syncDirectory', () => nodeFiles.syncDirectory(path)),
  list: (path) => doomed('list', () => nodeFiles.list(path)),
  touch: (path, at) => doomed('touch', () => nodeFiles.touch(path, at)),
  removeAtExit: (path, content) => nodeFiles.removeAtExit(path, content),
}

const one = CUT_ACTS.find(({ name }) => name === doom.act)
if (one === undefined) throw new Error(`there is no act ${doom.act}`)
const started: StartedSession = { at: doom.at, batches: [], records: [] }
const journal = createFileJournal({ home: doom.home, files })
const end = await one.act(actHost(one, started, journal))
say(end === null || end.ok ? 'told' : `refused ${JSON.stringify(end)}`)
say(`operations ${done.join(',')}`)
