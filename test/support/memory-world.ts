/** A project on a real disk with memory files, and a session whose model reads the files that a prompt names. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Script, withSummaries } from '@tidemark/simulator'
import { memoryFiles, type Session } from 'tidemark'
import { onTestFinished } from 'vitest'
import { createTestTidemark, type TestTidemark, type TestTidemarkOptions } from './test-tidemark.ts'

type MemoryOptions = Omit<Parameters<typeof memoryFiles>[0], 'cwd'>
type Problem = { readonly path: string; readonly why: string }

export interface MemoryWorld extends TestTidemark {
  readonly session: Session
  /** The folder around project and home. */
  readonly root: string
  /** The working directory. */
  readonly cwd: string
  readonly home: string
  /** Files that exist and were not read, as reported. */
  readonly unread: readonly Problem[]
  write(name: string, text: string): string
  /** Has the model read files, and returns the requests that were sent meanwhile. */
  read(...names: readonly string[]): Promise<readonly string[]>
  run(prompt: string): Promise<readonly string[]>
}

/** Calls Read with the paths behind `Read` in the prompt, and answers when it has the results. */
const readNamedFiles: Script = ({ messages }) => {
  const blocks = messages.flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  ) as readonly { readonly type: string; readonly text?: string }[]
  const prompt = blocks.findLastIndex(
    ({ text = '' }) => text.startsWith('Read: ') || text.startsWith('Say: '),
  )
  const isDone = blocks.findLastIndex(({ type }) => type === 'tool_result') > prompt
  const { text = '' } = blocks[prompt] ?? {}
  if (isDone || !text.startsWith('Read: ')) return { blocks: [{ type: 'text', text: 'Done.' }] }
  const paths = text.slice('Read: '.length).split(', ')
  return { blocks: paths.map((path) => ({ type: 'tool_use', name: 'Read', input: { file_path: path } })) }
}

export async function openMemoryWorld(
  files: Readonly<Record<string, string>>,
  { files: given = {}, ...options }: TestTidemarkOptions & { readonly files?: MemoryOptions } = {},
): Promise<MemoryWorld> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-memory-')))
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))
  const [cwd, home] = [join(root, 'project'), join(root, 'home')]
  const write = (name: string, text: string): string => {
    const path = join(cwd, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }
  mkdirSync(cwd)
  for (const [name, text] of Object.entries(files)) write(name, text)
  const unread: Problem[] = []
  const world = createTestTidemark({
    script: withSummaries(readNamedFiles),
    carriers: memoryFiles({ cwd, onRead: (found) => unread.push(...found.unread), ...given }),
    ...options,
  })
  const tools = {
    Read: {
      description: 'Reads a file.',
      inputSchema: { type: 'object', properties: { file_path: { type: 'string' } } },
      run: ({ file_path }: Record<string, unknown>) => readFileSync(join(cwd, String(file_path)), 'utf8'),
    },
  } as const
  const session = await world.tide.open('a', { tools })
  const run = async (prompt: string): Promise<readonly string[]> => {
    const before = world.bodies.length
    const end = await session.run(prompt).outcome
    if (!end.ok) throw new Error(end.message)
    return world.bodies.slice(before)
  }
  return {
    ...world,
    root,
    cwd,
    home,
    unread,
    session,
    write,
    run,
    read: (...names) => run(`Read: ${names.join(', ')}`),
  }
}

/** How often a text stands in another one. */
export function countCopies(text: string, part: string): number {
  return text.split(JSON.stringify(part).slice(1, -1)).length - 1
}
