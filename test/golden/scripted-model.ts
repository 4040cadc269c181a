/** A model that calls tools of many kinds with made-up inputs, and the tools' results. All by seeded choice. */
import { createHash } from 'node:crypto'
import type { Script } from '@tidemark/simulator'
import { createRandom, type Random } from './random.ts'

type Input = Record<string, unknown>
type ToolDefinition = Readonly<Record<string, unknown>> & { readonly name: string }

const PATHS = ['src/orders.ts', 'src/login.ts', 'src/prices.ts', 'test/orders.test.ts'] as const
const STATES = ['pending', 'in_progress', 'completed'] as const

const INPUTS: Readonly<Record<string, (random: Random) => Input>> = {
  Read: (random) => ({
    file_path: random.pick(PATHS),
    ...(random.chance(30) ? { offset: random.between(1, 90), limit: random.between(5, 50) } : {}),
  }),
  Edit: (random) => ({
    file_path: random.pick(PATHS),
    old_string: random.text(40),
    new_string: random.text(random.chance(20) ? 6_000 : 60),
  }),
  Write: (random) => ({ file_path: random.pick(PATHS), content: random.text(random.between(50, 5_000)) }),
  Bash: (random) => ({
    command: random.pick(['npm test', 'git status', 'npm run build', 'cat src/orders.ts']),
  }),
  Grep: (random) => ({ pattern: random.text(8), path: 'src' }),
  TodoWrite: (random) => ({
    todos: Array.from({ length: random.between(0, 4) }, (_, index) => ({
      content: `${index + 1}: ${random.text(20)}`,
      status: random.pick(STATES),
      activeForm: random.text(12),
    })),
  }),
  NotebookEdit: (random) => ({ notebook_path: 'study/prices.ipynb', new_source: random.text(80) }),
  str_replace_based_edit_tool: editorInput,
  WebFetch: () => ({ url: 'https://example.com/prices', prompt: 'Which prices are there?' }),
  mcp__tracker__search: (random) => ({ query: random.text(12) }),
  Deploy: (random) => ({ stage: random.pick(['test', 'live']), dry: random.chance(50) }),
  history: (random) => random.pick([{ text: 'order' }, { text: 'npm test' }, { errors: true }]),
}

function editorInput(random: Random): Input {
  const path = random.pick(PATHS)
  return random.pick<Input>([
    { command: 'view', path },
    { command: 'str_replace', path, old_str: random.text(30), new_str: random.text(50) },
    { command: 'create', path, file_text: random.text(400) },
    { command: 'insert', path, insert_line: 3, insert_text: random.text(30) },
  ])
}

/** Definitions for a request, in the order given. */
export function defineTools(names: readonly string[]): readonly ToolDefinition[] {
  return names.map((name) => {
    if (name === 'str_replace_based_edit_tool') return { type: 'text_editor_20250728', name }
    return { name, description: `Does ${name}.`, input_schema: { type: 'object', properties: {} } }
  })
}

export interface ScriptedModel {
  readonly script: Script
  /** The next prompt is answered with so many rounds of tool calls, and then with text. */
  expectPrompt(rounds: number): void
}

export interface ScriptedModelOptions {
  readonly thinks: boolean
  /** The most calls in one response. */
  readonly parallel: number
}

export function createScriptedModel(seed: string, options: ScriptedModelOptions): ScriptedModel {
  const { thinks, parallel } = options
  let prompts = 0
  let rounds = 0
  let given = 0
  return {
    expectPrompt(count) {
      prompts += 1
      rounds = count
      given = 0
    },
    script: ({ tools }) => {
      const random = createRandom(`${seed}/${prompts}/${given}`)
      const thought = thinks ? [{ type: 'thinking', thinking: random.text(random.between(50, 900)) }] : []
      const names = tools.map(({ name }) => String(name)).filter((name) => name in INPUTS)
      const [first, ...others] = names
      const isLast = given >= rounds || first === undefined
      given += 1
      if (isLast) return { blocks: [...thought, { type: 'text', text: `Done. ${random.text(120)}` }] }
      const text = random.chance(60) ? [{ type: 'text', text: random.text(80) }] : []
      const calls = Array.from({ length: random.between(1, parallel) }, () => {
        const name = random.pick([first, ...others])
        return { type: 'tool_use', name, input: JSON.parse(JSON.stringify(INPUTS[name]?.(random) ?? {})) }
      })
      return { blocks: [...thought, ...text, ...calls] }
    },
  }
}

/** A PNG by its head: 8 by 8 pixels and nothing else of it. */
const PNG_HEAD = 'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAYAAADED76LAAAAAElFTkSuQmCC'

export function imageBlock(): object {
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG_HEAD } }
}

export interface ToolOutcome {
  readonly content: string | readonly object[]
  readonly isError?: boolean
}

/** What a call gives back: by its input alone, so that the same call has the same result. `size`: of large ones. */
export function runScriptedTool(
  call: { readonly name: string; readonly input: unknown },
  size: number,
): ToolOutcome {
  const key = createHash('sha256')
    .update(`${call.name}${JSON.stringify(call.input)}`)
    .digest('hex')
  const random = createRandom(key)
  if (call.name === 'TodoWrite') return { content: 'The list is written.' }
  const kind = random.between(1, 100)
  if (kind <= 10) return { content: `Error: ${random.text(60)} at src/orders.ts:12`, isError: true }
  if (kind <= 15) return { content: [{ type: 'text', text: random.text(40) }, imageBlock()] }
  if (kind <= 17) return { content: '' }
  return { content: random.text(kind <= 60 ? random.between(30, 800) : random.between(size / 2, size)) }
}
