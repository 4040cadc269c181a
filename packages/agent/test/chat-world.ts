/** `tidemark chat` in a temporary folder, with a simulated model that makes given tool calls. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { main } from '@tidemark/cli'
import { type Script, type SimulatorServer, serve } from '@tidemark/simulator'
import { printThrownError } from '@tidemark/terminal/render/print-errors'
import type { Terminal } from '@tidemark/terminal/terminal'
import { onTestFinished } from 'vitest'
import { type ChatCommandOptions, runChatCommand } from '../src/commands/chat.ts'

// biome-ignore lint/suspicious/noExplicitAny: the expectations of a test check the shape
type ParsedJson = any

export interface Printed {
  readonly code: number
  readonly out: string
  readonly err: string
  /** The lines of standard output as JSON values. */
  readonly lines: readonly ParsedJson[]
}

export interface ChatWorld {
  /** The working directory. */
  readonly folder: string
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly server: SimulatorServer
  path(name: string): string
  write(name: string, content: string): void
  /** The text of a file in the working directory; null if there is none. */
  read(name: string): string | null
  /** Runs a command of `tidemark` with these arguments. */
  run(...args: readonly string[]): Promise<Printed>
  /** Runs `tidemark chat` with text on standard input. */
  pipe(text: string, choices?: Partial<ChatCommandOptions>, more?: Partial<Terminal>): Promise<Printed>
  /** Runs `tidemark chat -p PROMPT` in a terminal whose user gives these answers, one for each question. */
  answer(prompt: string, ...answers: readonly string[]): Promise<Printed & { questions: readonly string[] }>
  /** The text of the results of a tool that the model was sent in its last request. */
  lastResults(): readonly string[]
}

/** One response of the model: text, or tool calls by name. */
export type Step = string | Readonly<Record<string, object>>

/** Plays one step for each response in the conversation, and the last one again after that. */
export function playSteps(...steps: readonly Step[]): Script {
  return (_, { turn }) => {
    const step = steps[Math.min(turn, steps.length - 1)] ?? 'Done.'
    if (typeof step === 'string') return { blocks: [{ type: 'text', text: step }] }
    return {
      blocks: Object.entries(step).map(([name, input]) => ({
        type: 'tool_use',
        name,
        input: { ...input } as never,
      })),
    }
  }
}

/** `window`: the context window that the provider enforces, whatever the model. */
export async function createChatWorld(script: Script, window?: number): Promise<ChatWorld> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-chat-')))
  const [folder, home] = [join(root, 'project'), join(root, 'data')]
  mkdirSync(folder)
  const seen: { messages: readonly ParsedJson[] } = { messages: [] }
  const server = await serve({
    ...(window === undefined ? {} : { window }),
    script(request, context) {
      seen.messages = request.messages
      return script(request, context)
    },
  })
  onTestFinished(async () => {
    await server.close()
    // A process that has just been ended may still write a last file.
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  })
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: root,
    TIDEMARK_HOME: home,
    ANTHROPIC_BASE_URL: server.url,
    LANG: 'C.UTF-8',
  }
  const path = (name: string): string => join(folder, name)
  return {
    folder,
    home,
    env,
    server,
    path,
    write(name, content) {
      mkdirSync(dirname(path(name)), { recursive: true })
      writeFileSync(path(name), content)
    },
    read: (name) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : null),
    run: (...args) =>
      capture(env, (terminal) => main(args[0] === 'chat' ? [...args, '--cwd', folder] : args, terminal)),
    pipe: (text, choices = {}, more = {}) =>
      capture(env, (terminal) =>
        runChatCommand(
          { outputFormat: 'text', inputFormat: 'text', cwd: folder, ...choices },
          { ...terminal, ...more },
          Readable.from([Buffer.from(text)]),
        ),
      ),
    answer: (prompt, ...answers) => answerQuestions(env, { folder, prompt, answers }),
    lastResults: () =>
      seen.messages
        .flatMap(({ content }) => (Array.isArray(content) ? content : []))
        .filter(({ type }) => type === 'tool_result')
        .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content))),
  }
}

async function answerQuestions(
  env: Readonly<Record<string, string>>,
  given: { readonly folder: string; readonly prompt: string; readonly answers: readonly string[] },
): Promise<Printed & { questions: readonly string[] }> {
  const left = [...given.answers]
  const questions: string[] = []
  const ask = async (question: string): Promise<string | null> => {
    questions.push(question)
    return left.shift() ?? null
  }
  const choices = {
    outputFormat: 'text',
    inputFormat: 'text',
    cwd: given.folder,
    prompt: given.prompt,
  } as const
  const printed = await capture(env, (terminal) =>
    runChatCommand(
      choices,
      { ...terminal, isTty: true, isInputTty: true, isErrorTty: true, ask },
      Readable.from([]),
    ),
  )
  return Object.assign(printed, { questions })
}

async function capture(
  env: Readonly<Record<string, string>>,
  work: (terminal: Terminal) => Promise<number>,
): Promise<Printed> {
  let [out, err] = ['', '']
  const write = (text: string): void => {
    out += text
  }
  const warn = (text: string): void => {
    err += text
  }
  const terminal: Terminal = { write, warn, env, isTty: false, columns: 80 }
  const code = await work(terminal).catch((error: unknown) => printThrownError(error, terminal))
  return {
    code,
    out,
    err,
    get lines() {
      return out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
    },
  }
}
