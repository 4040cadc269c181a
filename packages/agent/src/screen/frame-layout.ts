/** Where the parts of the screen lie in a frame, so that nothing jumps and every line of the transcript is shown once. */

interface FrameParts {
  /** Lines that do not change any more, or only grow at their end. */
  readonly settled: readonly string[]
  /** Lines of what still runs. They stay below the others, because what has scrolled away cannot change. */
  readonly pending: readonly string[]
  readonly above: readonly string[]
  /** The input, or a question in its place. */
  readonly input: readonly string[]
  readonly below: readonly string[]
  /** Rows of the terminal. */
  readonly rows: number
  /** Rows from the first line of the frame to the bottom, if earlier lines have scrolled away; null before that. */
  readonly rowsToFill: number | null
}

interface FrameLayout {
  readonly lines: string[]
  /** How many lines at the top of the frame are the first of the settled ones, without a gap. */
  readonly leading: number
}

/** Rows of an input of one line, with its two borders. */
const INPUT_ROWS = 3

/**
 * Returns the lines of a frame: the first ones scroll away if there are more than rows. A terminal does not give back what
 * has scrolled away, so that a question or a list below the input would leave empty rows under the meter when it closes.
 * What is taller than an input of one line therefore covers the transcript instead of moving it, and rows that become free
 * otherwise stay above the input.
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

/** Returns the lines below the transcript. In a low terminal the input comes first, then what runs, then the meter. */
function fitFixedParts({ above, input, below, rows }: FrameParts): readonly string[] {
  const choices = [[...above, ...input, ...below], [...above, ...input], input]
  return choices.find((lines) => lines.length <= rows) ?? input.slice(-rows)
}
