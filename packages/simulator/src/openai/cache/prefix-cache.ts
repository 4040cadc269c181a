/**
 * The implicit prefix cache of OpenAI's models before GPT-5.6, and of servers that speak Chat Completions. Every prompt
 * is stored, and writes are free. A later prompt reads the longest prefix that it shares with a stored prompt, rounded
 * down to a step.
 */
import type { PrefixCacheRules } from '../dialects.ts'
import type { OpenaiCacheResult, PromptUnit, UnitPrompt } from './prompt-units.ts'

interface PrefixNode {
  readonly tokens: number
  expiresAt: number
  readonly children: Map<string, PrefixNode>
}

/** Milliseconds that a prefix is kept after its last use, by the value of `prompt_cache_retention`. */
export const PREFIX_RETENTION_MS = { in_memory: 5 * 60_000, '24h': 24 * 3_600_000 } as const

export interface PrefixCache {
  /** Finds what the request reads. `commit` of the result stores the prompt and refreshes what it shares. */
  apply(request: PrefixRequest): OpenaiCacheResult
  clear(): void
  readonly size: number
}

interface PrefixRequest {
  readonly prompt: UnitPrompt
  /** What must be equal for two prompts to share a prefix: account, model, key and settings. */
  readonly scope: string
  readonly rules: PrefixCacheRules
  readonly lifetimeMs: number
  readonly now: number
}

/** Maximum characters of stored prompts. Above it, the whole cache is emptied. */
const MAX_KEPT_LENGTH = 256 * 1_048_576

export function createPrefixCache(): PrefixCache {
  let roots = new Map<string, PrefixNode>()
  let length = 0
  let size = 0

  function addUnits(node: PrefixNode, units: readonly PromptUnit[], expiresAt: number): PrefixNode {
    let at = node
    for (const { text, tokens } of units) {
      let child = at.children.get(text)
      if (child === undefined) {
        child = { tokens, expiresAt, children: new Map() }
        at.children.set(text, child)
        length += text.length
        size += 1
      }
      child.expiresAt = Math.max(child.expiresAt, expiresAt)
      at = child
    }
    return at
  }

  return {
    apply({ prompt, scope, rules, lifetimeMs, now }) {
      const root = roots.get(scope)
      const found = root === undefined ? NOTHING_SHARED : findShared(root, prompt, rules, now)
      const whole = Math.floor(found.tokens / rules.step) * rules.step
      const read = whole < rules.minimum ? 0 : whole
      return {
        split: { read, write30m: 0, write12h: 0, input: prompt.tokens - read },
        hit: read === 0 ? null : found.position,
        breakpoints: [],
        commit(answer) {
          if (length > MAX_KEPT_LENGTH) {
            roots = new Map()
            length = 0
            size = 0
          }
          const start = roots.get(scope) ?? { tokens: 0, expiresAt: 0, children: new Map() }
          roots.set(scope, start)
          const units = rules.keepsAnswers ? [...prompt.units, ...answer] : prompt.units
          addUnits(start, units, now + lifetimeMs)
        },
      }
    },
    clear() {
      roots = new Map()
      length = 0
      size = 0
    },
    get size() {
      return size
    },
  }
}

const NOTHING_SHARED = { tokens: 0, position: 0 }

/**
 * Returns how many tokens the prompt shares with a stored prompt, and the position of the last unit that is shared at
 * least partly.
 */
function findShared(
  root: PrefixNode,
  { units }: UnitPrompt,
  { wholeMessages }: PrefixCacheRules,
  now: number,
): { readonly tokens: number; readonly position: number } {
  let node = root
  let tokens = 0
  for (const [position, unit] of units.entries()) {
    const child = node.children.get(unit.text)
    if (child === undefined || child.expiresAt <= now) {
      const part = wholeMessages ? 0 : findSharedPart(node, unit, now)
      return { tokens: tokens + part, position: part > 0 ? position : Math.max(0, position - 1) }
    }
    tokens += unit.tokens
    node = child
  }
  return { tokens, position: Math.max(0, units.length - 1) }
}

/** Returns how many tokens at the start of a unit are equal to those of a stored unit at the same place. */
function findSharedPart({ children }: PrefixNode, { text, tokens }: PromptUnit, now: number): number {
  let longest = 0
  for (const [other, child] of children)
    if (child.expiresAt > now) longest = Math.max(longest, countSharedCharacters(text, other))
  if (longest === 0) return 0
  return Math.min(tokens, Math.floor((tokens * longest) / text.length))
}

function countSharedCharacters(one: string, other: string): number {
  const most = Math.min(one.length, other.length)
  let count = 0
  while (count < most && one.charCodeAt(count) === other.charCodeAt(count)) count += 1
  return count
}
