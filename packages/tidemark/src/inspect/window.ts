/** How large the window was that a recorded session filled, and where its host would have compacted. */
import { DEFAULT_POLICY, scalePolicy, TidemarkError } from '@tidemark/core'
import type { FoundModel, LogFormat } from '@tidemark/wire'
import type { CompactionFound, ContextCurve } from './report.ts'

export interface WindowClues {
  readonly format: LogFormat
  /** What the log itself says. */
  readonly logged: number | null
  readonly model: FoundModel | null
  readonly compactions: readonly CompactionFound[]
  readonly peak: number
}

type Window = Pick<ContextCurve, 'window' | 'windowFrom' | 'autoCompact'>

/** Claude Code runs models that could take more with this window, unless it is told otherwise. */
const USUAL_WINDOW = 200_000

export function windowOf(clues: WindowClues): Window {
  const { tokens, from } = sized(clues)
  // The line is that of this engine and of Claude Code; Codex draws its own.
  const autoCompact = clues.format === 'codex' ? null : autoCompactLine(tokens, clues.model)
  return { window: tokens, windowFrom: from, autoCompact }
}

function sized({ logged, model, compactions, peak }: WindowClues): {
  readonly tokens: number | null
  readonly from: ContextCurve['windowFrom']
} {
  if (logged !== null) return { tokens: logged, from: 'log' }
  const own = model?.model.window ?? null
  if (own === null) return { tokens: null, from: null }
  if (peak > own) return longer(model?.model.longWindow ?? null, peak)
  const isShort = own > USUAL_WINDOW && peak <= USUAL_WINDOW && compactions.some(isAtUsualLine)
  return isShort ? { tokens: USUAL_WINDOW, from: 'compactions' } : { tokens: own, from: 'catalogue' }
}

/** More was sent than the window is said to hold: it was another one. */
function longer(window: number | null, peak: number): ReturnType<typeof sized> {
  return window !== null && peak <= window
    ? { tokens: window, from: 'catalogue' }
    : { tokens: null, from: null }
}

function isAtUsualLine({ trigger, preTokens }: CompactionFound): boolean {
  return trigger === 'auto' && preTokens !== null && preTokens <= USUAL_WINDOW
}

function autoCompactLine(window: number | null, model: FoundModel | null): number | null {
  if (window === null) return null
  try {
    const scaled = scalePolicy(DEFAULT_POLICY, { window, maxOutput: model?.model.maxOutput ?? null })
    return scaled.known ? scaled.lines.autoCompact : null
  } catch (error) {
    // A window that no policy works in, whoever wrote it into a log.
    if (error instanceof TidemarkError) return null
    throw error
  }
}
