/** Which files were read, edited or written, most recently first, and which of them the kept messages show. */
import { type Block, blocksOf, isToolResult, isToolUse } from '../conversation/block.ts'
import { isObject } from '../conversation/json.ts'
import type { Session } from '../conversation/session.ts'
import type { RehydratePolicy } from '../policy/groups/rehydrate-policy.ts'
import type { Entry } from '../view/entry.ts'
import { callsNewestFirst } from './call-walk.ts'
import { plainPath } from './path.ts'

export interface Touch {
  readonly path: string
  readonly isWrite: boolean
  readonly callId: string
  /** Of the record that holds the call. */
  readonly index: number
}

type FileTools = Pick<RehydratePolicy['files'], 'readTools' | 'writeTools'>

/** Newest first, a file as often as it was touched. */
export function touchesOf(session: Session, tools: FileTools, folder: string | null): readonly Touch[] {
  const names = new Set([...tools.readTools, ...tools.writeTools])
  return [...callsNewestFirst(session, names)].flatMap(({ call, index }) => {
    const path = pathIn(call.input)
    const isWrite = tools.writeTools.includes(call.name)
    return path === null ? [] : [{ path: plainPath(path, folder), isWrite, callId: call.id, index }]
  })
}

function pathIn(input: unknown): string | null {
  if (!isObject(input)) return null
  const path = input.file_path ?? input.notebook_path ?? input.path
  return typeof path === 'string' && path.trim() !== '' ? path : null
}

/**
 * Files whose content the kept messages show: by a read that was answered with it and not cleared, and that no
 * change made since is missing behind.
 */
export function shownFiles(
  touches: readonly Touch[],
  kept: readonly Entry[],
  isStub: (text: string) => boolean,
): ReadonlySet<string> {
  const answered = answeredWithContent(kept, isStub)
  const calls = callsIn(kept)
  const readAt = new Map<string, number>()
  for (const { path, isWrite, callId, index } of touches)
    if (!isWrite && answered.has(callId) && !readAt.has(path)) readAt.set(path, index)
  const isStale = (path: string, at: number): boolean =>
    touches.some(
      (touch) => touch.path === path && touch.isWrite && touch.index > at && !calls.has(touch.callId),
    )
  return new Set([...readAt].filter(([path, at]) => !isStale(path, at)).map(([path]) => path))
}

function answeredWithContent(kept: readonly Entry[], isStub: (text: string) => boolean): ReadonlySet<string> {
  const ids = kept.flatMap(({ record, cleared }) =>
    record.type !== 'user'
      ? []
      : blocksOf(record.message.content)
          .filter(isToolResult)
          .filter(({ tool_use_id: id }) => !cleared?.results.some((result) => result.id === id))
          .filter(({ content = '' }) => !isStub(textIn(content)))
          .map(({ tool_use_id: id }) => id),
  )
  return new Set(ids)
}

function textIn(content: string | readonly Block[]): string {
  const texts = blocksOf(content).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
  return texts.join('\n')
}

function callsIn(kept: readonly Entry[]): ReadonlySet<string> {
  const ids = kept.flatMap(({ record }) =>
    record.type === 'assistant'
      ? blocksOf(record.message.content)
          .filter(isToolUse)
          .map(({ id }) => id)
      : [],
  )
  return new Set(ids)
}
