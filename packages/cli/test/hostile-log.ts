/** A session log of Claude Code whose every text tries to run a script, with a compaction, a cache break and a file read again. */

/** Sets `window.hacked` wherever it is inserted as HTML. */
export const ATTACK: string =
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"\'><svg onload=window.hacked=1>'
const MODEL = 'claude-opus-4-5-20251101'
const START = Date.parse('2026-03-09T09:00:00.000Z')

export class HostileLog {
  readonly #name: string
  readonly #lines: string[] = []
  #parent: string | null = null
  #minutes = 0
  #calls = 0

  /** `name`: the id of the session, and the beginning of the ids of its calls. */
  constructor(name: string) {
    this.#name = name
  }

  get text(): string {
    return this.#lines.map((line) => `${line}\n`).join('')
  }

  #add(fields: object): this {
    const uuid = `u${this.#lines.length + 1}`
    this.#minutes += 0.5
    this.#lines.push(
      JSON.stringify({
        uuid,
        parentUuid: this.#parent,
        sessionId: this.#name,
        version: '2.0.0',
        cwd: `/home/user/${ATTACK.replaceAll('/', '')}`,
        gitBranch: ATTACK,
        timestamp: new Date(START + this.#minutes * 60_000).toISOString(),
        ...fields,
      }),
    )
    this.#parent = uuid
    return this
  }

  prompt(text: string): this {
    return this.#add({ type: 'user', message: { role: 'user', content: text } })
  }

  wait(minutes: number): this {
    this.#minutes += minutes
    return this
  }

  /** A call that reads a file: the request, and the result with its text. */
  read(
    path: string,
    text: string,
    usage: { readonly read: number; readonly written: number },
    name = 'Read',
  ): this {
    const id = `t${this.#lines.length}`
    return this.#answer([{ type: 'tool_use', id, name, input: { file_path: path } }], usage).#add({
      type: 'user',
      message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] },
    })
  }

  #answer(
    content: readonly object[],
    { read, written }: { readonly read: number; readonly written: number },
  ): this {
    this.#calls += 1
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
      output_tokens: 100,
    }
    const message = {
      id: `${this.#name}-m${this.#calls}`,
      role: 'assistant',
      model: MODEL,
      content,
      usage,
      stop_reason: 'end_turn',
    }
    return this.#add({ type: 'assistant', requestId: `r${this.#calls}`, message })
  }

  answer(text: string, usage: { readonly read: number; readonly written: number }): this {
    return this.#answer([{ type: 'text', text }], usage)
  }

  compact(preTokens: number, summary: string): this {
    this.#parent = null
    return this.#add({
      type: 'system',
      subtype: 'compact_boundary',
      content: ATTACK,
      compactMetadata: { trigger: 'auto', preTokens },
    }).#add({ type: 'user', isCompactSummary: true, message: { role: 'user', content: summary } })
  }
}

export function createHostileLog(): HostileLog {
  const log = new HostileLog('hostile').prompt(`Fix the login ${ATTACK}`)
  for (let call = 0; call < 12; call += 1)
    log.read(`/home/user/src/part-${call % 6}.ts`, `export const needle${call} = '${ATTACK}'\n`.repeat(40), {
      read: call === 0 ? 0 : 20_000 + call * 2_000,
      written: call === 0 ? 22_000 : 2_000,
    })
  return log
    .wait(30)
    .read(`/home/user/${ATTACK}.ts`, ATTACK, { read: 0, written: 46_000 })
    .compact(48_000, `The user wants the login fixed. ${ATTACK}`)
    .prompt('Go on.')
    .read('/home/user/src/part-1.ts', 'export const needle1 = 1\n', { read: 15_000, written: 8_000 })
    .answer(`Done. ${ATTACK}`, { read: 23_000, written: 500 })
}
