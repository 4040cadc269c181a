/** One long conversation of a coding agent, told once and spelled for each library in the form it takes. */

export interface Step {
  readonly id: string
  readonly tool: string
  readonly input: Readonly<Record<string, string>>
  readonly result: string
  readonly say: string
}

export interface Story {
  readonly prompt: string
  readonly steps: readonly Step[]
}

export const TOOLS: readonly string[] = ['Read', 'Bash', 'Grep', 'Edit']

/** `steps` calls with results of some 400 tokens each; the same for every library and every run. */
export function tellStory(steps: number): Story {
  return {
    prompt: 'The session expires too early. Find out why, mend it, and keep the public names.',
    steps: Array.from({ length: steps }, (_, index) => step(index)),
  }
}

function step(index: number): Step {
  const tool = TOOLS[index % TOOLS.length] ?? 'Read'
  const file = `src/room-${index % 37}/file-${index % 113}.ts`
  const input: Readonly<Record<string, string>> =
    tool === 'Bash' ? { command: `npm test -- ${file}` } : { file_path: file, pattern: `name${index}` }
  const lines = Array.from(
    { length: 24 },
    (_, line) => `${line + 1}  const value${index}_${line} = read('${file}', ${line})`,
  )
  return { id: `call_${index}`, tool, input, result: lines.join('\n'), say: `Looking at ${file} (${index}).` }
}

/** Is it the text of a result, and not what was put in its place? */
export function isResultText(text: string): boolean {
  return text.includes("= read('src/")
}

/** What the scripted model answers where a library asks one for a summary, at once and always the same. */
export const SUMMARY: string = Array.from(
  { length: 20 },
  (_, index) =>
    `${index + 1}. The session expired too early because of what stood in room ${index}; it was mended there.`,
).join('\n')
