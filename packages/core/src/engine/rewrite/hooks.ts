/**
 * Hooks around a compaction, in order: before it, when the session starts anew behind it, after it. One that hangs
 * is left at its time, one that fails is told and takes nothing down, and what they add is bounded.
 */
import type { CompactTrigger } from '../../conversation/metadata.ts'
import type { Receipt } from '../../summarize/receipt.ts'
import type { Deadlines } from '../deadlines.ts'
import type { Signal } from '../ports.ts'

export interface PreCompactInput {
  readonly trigger: CompactTrigger
  readonly customInstructions: string
  readonly sessionId: string
}

export interface PreCompactOutput {
  /** Added behind the person's. */
  readonly newCustomInstructions?: string
  /** For the person's eyes. */
  readonly userDisplayMessage?: string
  /** Do not compact, and why. Not obeyed where the session could not go on. */
  readonly block?: string
}

export interface SessionStartInput {
  readonly source: 'startup' | 'resume' | 'clear' | 'compact' | 'fork'
  readonly sessionId: string
}

export interface PostCompactInput {
  readonly trigger: CompactTrigger
  readonly sessionId: string
  readonly summary: string
  readonly receipt: Receipt
}

/** What a hook has for the model; blank says nothing. */
export interface HookContext {
  readonly additionalContext?: string
  readonly userDisplayMessage?: string
}

export interface CompactHooks {
  readonly preCompact?: readonly Hook<PreCompactInput, PreCompactOutput>[]
  readonly sessionStart?: readonly Hook<SessionStartInput, HookContext>[]
  readonly postCompact?: readonly Hook<PostCompactInput, HookContext>[]
}

export interface Hook<Input, Output> {
  readonly name: string
  /** Seconds; the policy's where it names none. */
  readonly timeoutSeconds?: number
  readonly run: (input: Input, signal?: Signal) => Output | undefined | Promise<Output | undefined>
}

export interface HookRules {
  readonly deadlines: Deadlines
  readonly timeoutSeconds: number
  readonly signal: Signal | undefined
}

export type HookEnd<Output> =
  | { readonly name: string; readonly ok: true; readonly output: Output | undefined }
  | {
      readonly name: string
      readonly ok: false
      readonly why: 'timeout' | 'aborted' | 'threw'
      readonly message: string
    }

/** One after the other, in the order given: a later one may build on what an earlier one did to the world. */
export async function* runHooks<Input, Output>(
  hooks: readonly Hook<Input, Output>[],
  input: Input,
  rules: HookRules,
): AsyncGenerator<HookEnd<Output>, void> {
  for (const hook of hooks) {
    if (rules.signal?.aborted === true) return
    yield await runHook(hook, input, rules)
  }
}

async function runHook<Input, Output>(
  hook: Hook<Input, Output>,
  input: Input,
  { deadlines, signal, timeoutSeconds }: HookRules,
): Promise<HookEnd<Output>> {
  const { name } = hook
  const seconds = hook.timeoutSeconds ?? timeoutSeconds
  try {
    const end = await deadlines.within(seconds * 1000, async (bound) => hook.run(input, bound), signal)
    if (end.ok) return { name, ok: true, output: end.value }
    const message =
      end.why === 'timeout' ? `took longer than ${seconds} seconds and was left` : 'was called off'
    return { name, ok: false, why: end.why, message: `The hook ${name} ${message}.` }
  } catch (thrown) {
    return { name, ok: false, why: 'threw', message: wordsOf(thrown) }
  }
}

function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
