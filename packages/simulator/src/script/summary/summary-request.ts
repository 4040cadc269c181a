/** Is the model asked to sum up? By the provider itself, or by a client in its last message. */
import { textsOf, unansweredIn } from '../said.ts'
import type { ScriptRequest } from '../script.ts'

/**
 * The last text of the request demands `<summary>` tags, and either `<analysis>` before them or a summary of a
 * conversation. Only the last text counts: what lies before it is material, whatever it says.
 */
export function isSummaryRequest(request: Pick<ScriptRequest, 'kind' | 'messages'>): boolean {
  if (request.kind === 'compaction') return true
  const asked = lastText(request)
  if (!asked.includes('<summary>')) return false
  return (
    asked.includes('<analysis>') ||
    (/\bsummari[sz]e\b/i.test(asked) && /\b(?:conversation|session)\b/i.test(asked))
  )
}

/** What asks for the summary: the provider's instructions, or the last text of the client. */
export function summaryPrompt(request: Pick<ScriptRequest, 'kind' | 'instructions' | 'messages'>): string {
  return request.kind === 'compaction' ? (request.instructions ?? '') : lastText(request)
}

function lastText({ messages }: Pick<ScriptRequest, 'messages'>): string {
  return unansweredIn(messages).flatMap(textsOf).at(-1) ?? ''
}
