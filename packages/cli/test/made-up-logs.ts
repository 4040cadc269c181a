/** Small made-up logs of Claude Code for tests of commands. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface MadeUpLog {
  readonly name: string
  readonly project?: string
  readonly model?: string
  /** YYYY-MM-DD */
  readonly day?: string
  /** Ids of the responses. */
  readonly answers?: readonly string[]
}

export function writeLog(folder: string, log: MadeUpLog): string {
  const path = join(folder, `${log.name}.jsonl`)
  writeFileSync(
    path,
    buildLogLines(log)
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(''),
  )
  return path
}

export function buildLogLines(log: MadeUpLog): readonly object[] {
  const { name, project = '/home/user/shop', day = '2026-03-09', answers = [`${name}-1`, `${name}-2`] } = log
  const model = log.model ?? 'claude-opus-4-5-20251101'
  const common = { sessionId: `${name}-0000-4000`, cwd: project, version: '2.1.0' }
  const prompt = {
    type: 'user',
    uuid: `${name}-prompt`,
    parentUuid: null,
    timestamp: `${day}T09:00:00.000Z`,
    ...common,
    message: { role: 'user', content: `Please look into ${name}.` },
  }
  const replies = answers.map((id, index) => ({
    type: 'assistant',
    uuid: `${name}-answer-${index}`,
    parentUuid: index === 0 ? prompt.uuid : `${name}-answer-${index - 1}`,
    timestamp: `${day}T09:0${index + 1}:00.000Z`,
    requestId: `req-${id}`,
    ...common,
    message: {
      id,
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'Done.' }],
      usage: {
        input_tokens: 10,
        output_tokens: 20,
        cache_read_input_tokens: index * 30_000,
        cache_creation_input_tokens: 30_000,
        cache_creation: { ephemeral_5m_input_tokens: 30_000, ephemeral_1h_input_tokens: 0 },
      },
    },
  }))
  return [prompt, ...replies]
}
