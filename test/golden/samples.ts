/** Six sample logs: the one that ships with the command line, and made-up ones of Claude Code and Codex. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createRandom, type Random } from './random.ts'

type Line = Readonly<Record<string, unknown>>

const SHIPPED = fileURLToPath(new URL('../../packages/cli/sample/login-bug.jsonl', import.meta.url))
const START = Date.UTC(2026, 2, 9, 9, 0, 0)

function toText(lines: readonly (Line | string)[]): string {
  return lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')
}

/** A log of Claude Code, line by line: each new line follows the one before. */
class ClaudeLog {
  readonly lines: (Line | string)[] = []
  readonly random: Random
  readonly #seed: string
  readonly #model: string
  #parentUuid: string | null = null
  #context = 14_000
  #calls = 0

  constructor(seed: string, model: string) {
    this.#seed = seed
    this.#model = model
    this.random = createRandom(seed)
  }

  add(type: string, fields: Line, minutes = 1): void {
    const count = this.lines.length
    const uuid = `5a5a5a5a-0000-4000-8000-${String(count + 1).padStart(12, '0')}`
    const timestamp = new Date(START + (count + minutes) * 60_000).toISOString()
    const place = { uuid, parentUuid: this.#parentUuid, timestamp, gitBranch: 'main', userType: 'external' }
    const session = {
      sessionId: '7b7b7b7b-0000-4000-8000-000000000001',
      cwd: '/projects/shop',
      version: '2.1.0',
    }
    this.lines.push({ type, ...place, ...session, ...fields })
    this.#parentUuid = uuid
  }

  prompt(text: string): void {
    this.add('user', { message: { role: 'user', content: text } })
  }

  /** One response with one call, block by block as Claude Code logs it, and the result. */
  call(name: string, input: Line, result: string | readonly Line[], isBroken = false): void {
    const message = this.#message(isBroken)
    const id = `toolu_${this.#seed}_${this.#calls}`
    const fields = { requestId: `req_${this.#seed}_${this.#calls}` }
    const text = { type: 'text', text: this.random.text(60) }
    this.add('assistant', { ...fields, message: { ...message, content: [text], stop_reason: null } })
    const call = { type: 'tool_use', id, name, input }
    this.add('assistant', { ...fields, message: { ...message, content: [call], stop_reason: 'tool_use' } })
    const failed = typeof result === 'string' && result.startsWith('Error') ? { is_error: true } : {}
    const answer = { type: 'tool_result', tool_use_id: id, content: result, ...failed }
    this.add('user', { message: { role: 'user', content: [answer] }, toolUseResult: {} })
    this.#context += this.random.between(400, 3_000)
  }

  say(text: string): void {
    const content = [{ type: 'text', text }]
    this.add('assistant', { message: { ...this.#message(false), content, stop_reason: 'end_turn' } })
  }

  compactTo(tokens: number): void {
    const compactMetadata = { trigger: 'auto', preTokens: this.#context }
    this.#context = tokens
    this.add('system', { subtype: 'compact_boundary', content: 'Conversation compacted', compactMetadata })
    const content = `This session is being continued from a previous conversation. ${this.random.text(600)}`
    this.add('user', { isCompactSummary: true, message: { role: 'user', content } })
  }

  #message(isBroken: boolean): Line {
    this.#calls += 1
    const read = isBroken ? 0 : this.#context - this.random.between(500, 900)
    const written = this.#context - read
    const usage = {
      input_tokens: 4,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
      output_tokens: this.random.between(20, 400),
    }
    const id = `msg_${this.#seed}_${this.#calls}`
    return { id, type: 'message', role: 'assistant', model: this.#model, usage }
  }
}

function claudeWork(): string {
  const log = new ClaudeLog('work', 'claude-opus-4-5-20251101')
  const { random } = log
  log.lines.push({ type: 'summary', summary: 'Sums of orders', leafUuid: 'none' })
  log.prompt('The sum of an order is wrong by a cent. Please fix it.')
  for (const path of ['orders.ts', 'prices.ts', 'orders.ts'])
    log.call('Read', { file_path: `/projects/shop/src/${path}` }, random.text(3_000))
  log.call(
    'TodoWrite',
    { todos: [{ content: 'Fix the sum', status: 'in_progress', activeForm: 'Fixing' }] },
    'ok',
  )
  log.call('Edit', { file_path: '/projects/shop/src/orders.ts', old_string: 'a', new_string: 'b' }, 'Edited.')
  log.call('Bash', { command: 'npm test' }, 'Error: 1 test failed\n at src/orders.ts:7', true)
  log.call('Bash', { command: 'npm test' }, '12 tests passed')
  log.say('The sum is right now.')
  return toText(log.lines)
}

function claudeCompacted(): string {
  const log = new ClaudeLog('compacted', 'claude-sonnet-5-5')
  const { random } = log
  for (const part of [1, 2, 3]) {
    log.prompt(`Please do part ${part} of the search. Key: sk-ant-api03-${'x'.repeat(90)}`)
    for (let count = 0; count < 4; count += 1)
      log.call('mcp__tracker__search', { query: random.text(12) }, [
        { type: 'text', text: random.text(5_000) },
      ])
    log.say(random.text(200))
    if (part < 3) log.compactTo(9_000 + part * 500)
  }
  return toText(log.lines)
}

function claudeDamaged(): string {
  const log = new ClaudeLog('damaged', 'claude-haiku-4-5')
  log.prompt('Please look into the login.')
  log.call('NotebookEdit', { notebook_path: '/projects/shop/a.ipynb', new_source: 'x = 1' }, 'ok')
  log.lines.push('{"type":"assistant","uuid":"half')
  const side = { isSidechain: true, agentId: 'agent-1' }
  log.add('user', { ...side, message: { role: 'user', content: 'Find the login route.' } })
  log.add(
    'system',
    { subtype: 'local_command', content: '<local-command-stdout>ok</local-command-stdout>' },
    90,
  )
  log.call('Glob', { pattern: '**/login*' }, 'src/login.ts', true)
  log.prompt('[Request interrupted by user]')
  return toText(log.lines)
}

interface Tokens {
  input: number
  cached: number
  output: number
}

function codexUsage({ input, cached, output }: Tokens): Line {
  return {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_output_tokens: 0,
    total_tokens: input + output,
  }
}

/** A rollout of Codex: items of the conversation, token counts, and what is no part of it. */
class CodexLog {
  readonly lines: Line[] = []
  readonly random: Random
  readonly #total: Tokens = { input: 0, cached: 0, output: 0 }
  #input = 9_000

  constructor(seed: string) {
    this.random = createRandom(seed)
  }

  add(type: string, payload: Line): void {
    this.lines.push({ timestamp: new Date(START + this.lines.length * 45_000).toISOString(), type, payload })
  }

  item(type: string, payload: Line): void {
    this.add('response_item', { type, ...payload })
  }

  say(role: 'user' | 'assistant', text: string): void {
    this.item('message', { role, content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }] })
  }

  call(name: string, call_id: string): void {
    const plan = { plan: [{ step: 'Find the pump', status: 'in_progress' }] }
    const input = name === 'update_plan' ? plan : { command: [name, '*** Update File: src/pump.ts'] }
    this.item('function_call', { name, arguments: JSON.stringify(input), call_id })
    this.count()
    const output = JSON.stringify({ output: this.random.text(2_000), metadata: {} })
    this.item('function_call_output', { call_id, output })
  }

  count(): void {
    const last = { input: this.#input, cached: this.#input - 700, output: this.random.between(30, 300) }
    this.#total.input += last.input
    this.#total.cached += last.cached
    this.#total.output += last.output
    const usage = { total_token_usage: codexUsage(this.#total), last_token_usage: codexUsage(last) }
    this.add('event_msg', { type: 'token_count', info: { ...usage, model_context_window: 272_000 } })
    this.#input += this.random.between(700, 4_000)
  }

  compactTo(tokens: number): void {
    this.add('compacted', { message: `What was done: ${this.random.text(300)}` })
    this.#input = tokens
  }
}

function codexRollout(isCompacted: boolean): string {
  const log = new CodexLog(`codex ${isCompacted}`)
  const { random } = log
  const cwd = '/projects/boat'
  log.add('session_meta', { id: '6c6c6c6c-0000-4000-8000-000000000001', cwd, cli_version: '0.60.0' })
  log.add('turn_context', { model: 'gpt-5.1-codex', cwd, approval_policy: 'never' })
  log.say('user', `<environment_context>\n<cwd>${cwd}</cwd>\n</environment_context>`)
  for (const part of [1, 2, 3]) {
    log.say('user', `Please do part ${part}: the pump runs too long.`)
    const summary = [{ type: 'summary_text', text: random.text(80) }]
    log.item('reasoning', { summary, encrypted_content: 'eHl6' })
    for (const tool of ['shell', 'apply_patch', 'update_plan']) log.call(tool, `call_${part}_${tool}`)
    log.say('assistant', random.text(150))
    log.count()
    if (isCompacted && part === 2) log.compactTo(6_000)
  }
  return toText(log.lines)
}

export const SAMPLES: Readonly<Record<string, () => string>> = {
  'sample login-bug': () => readFileSync(SHIPPED, 'utf8'),
  'claude-code work': claudeWork,
  'claude-code compacted': claudeCompacted,
  'claude-code damaged': claudeDamaged,
  'codex rollout': () => codexRollout(false),
  'codex compacted': () => codexRollout(true),
}
