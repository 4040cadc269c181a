/** Tool calls with what came of them, in the order they were made: what most facts of a session are read off. */
import { type Block, blocksOf, isText, isToolResult, isToolUse } from '../conversation/block.ts'
import { isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { commandOf, type FileTouch, kindOf, type ToolKind, touchesOf } from './tool-kind.ts'

export interface ToolRun {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly kind: ToolKind
  /** Of a shell call. */
  readonly command: string | null
  readonly touches: readonly FileTouch[]
  /** Uuid of the record that made the call. */
  readonly uuid: string
  /** Place of that record in the history, and of the one with the result; null while it has none. */
  readonly place: number
  readonly answeredAt: number | null
  readonly resultUuid: string | null
  readonly result: string
  readonly failed: boolean
}

/** `history`: the records of the branch in order, from the first to the last one that counts. */
export function toolRunsOf(history: readonly KnownRecord[]): readonly ToolRun[] {
  const runs: ToolRun[] = []
  const byId = new Map<string, number>()
  history.forEach((record, place) => {
    if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record)) return
    for (const block of blocksOf(record.message.content)) {
      if (record.type === 'assistant') enterCall(runs, byId, { block, record, place })
      else enterResult(runs, byId, { block, record, place })
    }
  })
  return runs
}

interface Found {
  readonly block: Block
  readonly record: KnownRecord
  readonly place: number
}

function enterCall(runs: ToolRun[], byId: Map<string, number>, { block, record, place }: Found): void {
  if (!isToolUse(block) || byId.has(block.id)) return
  const kind = kindOf(block.input)
  byId.set(block.id, runs.length)
  runs.push({
    id: block.id,
    name: typeof block.name === 'string' ? block.name : 'unknown',
    input: block.input,
    kind,
    command: kind === 'shell' ? commandOf(block.input) : null,
    touches: touchesOf(block.input, kind),
    uuid: record.uuid,
    place,
    answeredAt: null,
    resultUuid: null,
    result: '',
    failed: false,
  })
}

function enterResult(runs: ToolRun[], byId: Map<string, number>, { block, record, place }: Found): void {
  if (!isToolResult(block)) return
  const at = byId.get(block.tool_use_id)
  const run = at === undefined ? undefined : runs[at]
  if (at === undefined || run === undefined || run.answeredAt !== null) return
  const result = resultText(block.content)
  const failed = block.is_error === true || (run.kind === 'shell' && exitedBadly(result))
  runs[at] = { ...run, answeredAt: place, resultUuid: record.uuid, result, failed }
}

export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: Block) => (isText(block) ? [block.text] : [])).join('\n')
}

/** Programs that do not mark a failed command say its exit code above the output. */
const EXIT = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** Nothing said behind that: a search that found nothing, a test that was not true. */
const SILENT = /(?:^|\n)Output:\s*$/

function exitedBadly(result: string): boolean {
  const code = EXIT.exec(result.slice(0, 400))?.[1]
  return code !== undefined && Number(code) !== 0 && !SILENT.test(result.slice(-200))
}
