/** Texts that come in place of a summary: a tool call written out, an error, a refusal, the task itself. */

/** Where a line begins with it: elsewhere it is spoken of. */
const TOOL_PROTOCOL: readonly RegExp[] = [
  /^\s*<\s*(?:\w+:)?(?:function_calls|invoke\s+name\s*=|parameter\s+name\s*=)/im,
  /^\s*<\s*(?:tool_calls?|tool_use|tool_result)\b[^>]*>/im,
  /^\s*(?:<\|(?:tool|python_tag|tool_calls?_(?:begin|start))[^|]*\|>|\[TOOL_CALLS\])/im,
  /^\s*\{\s*"(?:type"\s*:\s*"tool_use|tool_calls?"|function_call")/m,
]

/** Code that quotes such markup is no call, and neither is a message of the person told word for word. */
export function withToolProtocol(summary: string): boolean {
  const prose = summary.replace(/```[\s\S]*?(?:```|$)/g, '').replace(/`[^`\n]*`/g, '')
  return TOOL_PROTOCOL.some((pattern) => pattern.test(prose))
}

/** Longer texts say more than that something failed, however they begin. */
const SHORT = 600

const ERRORS: readonly RegExp[] = [
  /^(?:(?:api|internal|request|server|connection) error\b|error\s*:)/i,
  /^\{\s*"(?:type"\s*:\s*"error"|error"\s*:)/,
  /^(?:prompt is too long|request timed out|service unavailable|bad gateway|overloaded_error|rate limit (?:exceeded|reached))/i,
  /^overloaded[.!]?$/i,
  /^(?:4\d\d|5\d\d)\b.{0,80}(?:error|overloaded|limit|unavailable|timeout)/i,
]

const REFUSALS: readonly RegExp[] = [
  /^(?:i['’]?m |i am )?(?:very )?sorry\b/i,
  /^(?:i |we )(?:can['’]?t|cannot|won['’]?t|will not|am unable|am not able|['’]m unable|['’]m not able|must decline|decline)\b/i,
  /^(?:i['’]m (?:unable|not able)|as an ai\b)/i,
  /^(?:there (?:is|was) (?:no|nothing)|no|the) conversation\b.{0,60}(?:to summari[sz]e|is empty|was provided|has (?:not )?(?:started|begun)|yet)/i,
]

export function isErrorText(text: string): boolean {
  const body = bodyOf(text)
  return body.length <= SHORT && ERRORS.some((pattern) => pattern.test(body))
}

export function isRefusalText(text: string): boolean {
  const body = bodyOf(text)
  return body.length <= SHORT && REFUSALS.some((pattern) => pattern.test(body))
}

function bodyOf(text: string): string {
  return text.replace(/^\s*summary:\s*/i, '').trim()
}

/** Lines of the task that a summary could hold by chance are shorter than this. */
const TELLING_LINE = 40
/** So many of them, or all there are, make an echo. */
const TELLING_LINES = 3

/** Several long lines of the task stand in the answer word for word. */
export function echoesTask(answer: string, prompt: string): boolean {
  const said = squeezed(answer)
  const lines = new Set(
    prompt
      .split('\n')
      .map(squeezed)
      .filter((line) => line.length >= TELLING_LINE),
  )
  const found = [...lines].filter((line) => said.includes(line)).length
  return lines.size > 0 && found >= Math.min(TELLING_LINES, lines.size)
}

function squeezed(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase()
}
