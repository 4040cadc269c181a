/**
 * The simulated model after the tour's job, when the user tries the session. For each prompt, it reads a report, notes that in a file,
 * which needs the user's permission, and suggests what to try. So the context grows with each prompt.
 */
import { type Reply, type Script, withSummaries } from '@tidemark/simulator'

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'] as const

const ADVICE = [
  'Try `/context` to see what fills the window.',
  'Try `/compact`: it shows a preview first. `/undo` takes it back.',
  'Press Ctrl-T to open what was done to the context: clearings, compactions, cache breaks.',
  'Try `/rewind` to go back to an earlier message, or `/history 1998` to find what has left the context.',
  'Try `/cost`, then `/export` and `/help`.',
] as const

interface TalkCall {
  readonly name: 'Read' | 'Edit'
  readonly input: Readonly<Record<string, string>>
}

/** Creates the script. It counts prompts, so that each one reads another report and gets other advice. */
export function createTrialScript(): Script {
  let prompts = 0
  let calls = 0
  // Ids must stay unique when a session is opened again.
  const start = Date.now().toString(36)
  const say = (text: string, ...given: readonly TalkCall[]): Reply => {
    const blocks = given.map((call) => {
      calls += 1
      return { type: 'tool_use' as const, id: `toolu_talk_${call.name}_${start}_${calls}`, ...call }
    })
    return { blocks: [{ type: 'text', text }, ...blocks] }
  }
  return withSummaries((request): Reply => {
    const answered = findAnsweredTool(request)
    if (answered === null) prompts += 1
    const index = Math.max(0, prompts - 1)
    const day = DAYS[index % DAYS.length] ?? ''
    if (answered === null)
      return say(
        'I am a script and cannot understand you, but my tools are real. I read a report, so that the context grows.',
        { name: 'Read', input: { file_path: `reports/${day.toLowerCase()}.txt` } },
        { name: 'Read', input: { file_path: NOTED_IN } },
      )
    if (answered === 'Read')
      return say('I note it. In this session you are asked before a file is changed.', {
        name: 'Edit',
        input: {
          file_path: NOTED_IN,
          old_string: '# Changes\n',
          new_string: `# Changes\n- The orders of ${day} were checked once more (${prompts}).\n`,
        },
      })
    return say(`I have read the report of ${day}. ${ADVICE[index % ADVICE.length] ?? ''}`)
  })
}

/** A file that the job of the tour has written. */
const NOTED_IN = 'CHANGES.md'

/** Returns the tool whose result is in the last message; null if the message is a prompt. */
function findAnsweredTool({ messages }: Parameters<Script>[0]): string | null {
  const { content = [] } = messages.at(-1) ?? {}
  if (typeof content === 'string') return null
  const ids = content.flatMap((block) => (block.type === 'tool_result' ? String(block.tool_use_id) : []))
  const id = ids.at(-1)
  return id === undefined ? null : (/^toolu_talk_([A-Z][a-z]+)_/.exec(id)?.[1] ?? '')
}
