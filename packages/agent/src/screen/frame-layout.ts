/** Lays out the parts of the screen in a frame, so that nothing jumps and every line of the transcript is shown once. */

interface FrameParts {
  /** Lines that no longer change, or only grow at their end. */
  readonly settled: readonly string[]
  /** Lines of running items. They are below all others, because lines that have scrolled away cannot change. */
  readonly pending: readonly string[]
  /** Running work and queued prompts. */
  readonly above: readonly string[]
  /** The input, or a question that replaces it. */
  readonly input: readonly string[]
  /** The meter and the hint. */
  readonly below: readonly string[]
  /** Rows of the terminal. */
  readonly rows: number
  /** Rows from the first line of the frame to the bottom, if earlier lines have scrolled away; null before that. */
  readonly rowsToFill: number | null
}

interface FrameLayout {
  readonly lines: string[]
  /** Number of lines at the top of the frame that are the first settled lines, without a gap. */
  readonly leading: number
}

/** Rows of a one-line input with its two borders. */
const INPUT_ROWS = 3

/**
 * Returns the lines of a frame; its first lines scroll away if there are more than rows. A terminal does not give scrolled lines back, so a
 * question or list that pushed lines up would leave empty rows when it closes. Therefore everything taller than a one-line input covers the
 * transcript instead, and other rows that become free stay above the input.
 */
export function layOutFrame(parts: FrameParts): FrameLayout {
  const { settled, above, input, below, rows, rowsToFill } = parts
  const fixed = fitFixedParts(parts)
  const resting = above.length + Math.min(input.length, INPUT_ROWS) + below.length
  const pending = shortenPending(parts.pending, Math.max(1, rows - resting - 1))
  const transcript = [...settled, ...pending]
  const top = Math.min(transcript.length, Math.max(0, transcript.length + resting - rows))
  const room = rows - fixed.length
  const first = Math.max(top, transcript.length - room)
  const visible = transcript.slice(first)
  const free = Math.max(0, (top > 0 ? rows : (rowsToFill ?? 0)) - visible.length - fixed.length)
  return {
    lines: [...transcript.slice(0, top), ...visible, ...Array.from({ length: free }, () => ''), ...fixed],
    leading: Math.min(settled.length, first > top ? top : transcript.length),
  }
}

function shortenPending(lines: readonly string[], most: number): readonly string[] {
  return lines.length <= most
    ? lines
    : [...lines.slice(0, most - 1), `  … ${lines.length - most + 1} more lines`]
}

/** Returns the lines below the transcript. In a low terminal, the input has priority, then running work, then the meter. */
function fitFixedParts({ above, input, below, rows }: FrameParts): readonly string[] {
  const choices = [[...above, ...input, ...below], [...above, ...input], input]
  return choices.find((lines) => lines.length <= rows) ?? input.slice(-rows)
}
