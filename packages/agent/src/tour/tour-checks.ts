/** Checks what survived the job with Tidemark: each statement is checked against the last request, the log and the disk. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { TidemarkRun } from './tidemark-run.ts'
import { EARLY_TEST_OUTPUT, EDITED_FILES, FIRST_PROMPT, OPEN_TODO } from './tour-job.ts'
import { runProjectTests, type TourProject } from './tour-project.ts'
import type { TourStep } from './tour-steps.ts'

type CheckStep = Extract<TourStep, { readonly kind: 'check' }>

/** Makes one statement for each thing that should have survived, and checks it. Runs the tests of the project once more. */
export async function checkSurvivors(
  run: Pick<TidemarkRun, 'session' | 'lastRequest' | 'lastSummary' | 'bill'>,
  project: TourProject,
  window: number,
): Promise<readonly CheckStep[]> {
  const request = listTexts(run.lastRequest()).join('\n')
  const largest = Math.max(...run.bill().promptSizes)
  const found = await run.session.history({ text: EARLY_TEST_OUTPUT })
  const tests = await runProjectTests(project)
  return [
    check(
      `The user's first message, rules included, is in the last request word for word.${explainRepair(run.lastSummary())}`,
      request.includes(FIRST_PROMPT),
    ),
    check(`The todo that is still open is in view: "${OPEN_TODO}".`, isTodoOpen(request)),
    check(
      `The edited files are in view as they are on disk: ${EDITED_FILES.join(', ')}.`,
      await hasFileTexts(request, project),
    ),
    check(
      `An early test result ("${EARLY_TEST_OUTPUT}") has left the request, and is still found in the log.`,
      !request.includes(EARLY_TEST_OUTPUT) &&
        found.is_error !== true &&
        found.body.includes(EARLY_TEST_OUTPUT),
    ),
    check(
      `No prompt outgrew the window (the refusal above was planted): the largest had ${formatTokens(largest)} of ${formatTokens(window)} tokens.`,
      largest <= window,
    ),
    check(
      `The tests, run once more just now: ${tests.passed} pass, ${tests.failed} fail.`,
      tests.failed === 0 && tests.passed > 0,
    ),
  ]
}

function check(text: string, isTrue: boolean): CheckStep {
  return { kind: 'check', text, isTrue }
}

/** Explains why the request has the message if the model's summary did not have it. */
function explainRepair(summary: string | null): string {
  return summary === null || summary.includes(FIRST_PROMPT)
    ? ''
    : ' The last summary that the model wrote had dropped it; Tidemark noticed, and added it from the log.'
}

function isTodoOpen(request: string): boolean {
  return (
    request.includes(`[pending] ${OPEN_TODO}`) ||
    request.includes(JSON.stringify({ content: OPEN_TODO, status: 'pending' }))
  )
}

/** Returns true if every line of every edited file is in the request. */
async function hasFileTexts(request: string, { folder }: TourProject): Promise<boolean> {
  const files = await Promise.all(EDITED_FILES.map((name) => readFile(join(folder, name), 'utf8')))
  return files.every((text) => text.split('\n').every((line) => request.includes(line)))
}

/** Lists all texts in the messages of a request body: of messages, tool calls and tool results. */
function listTexts(body: string): readonly string[] {
  const { messages } = JSON.parse(body) as { readonly messages: unknown }
  const texts: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (Array.isArray(value)) for (const each of value) collect(each)
    else if (typeof value === 'object' && value !== null) {
      const { type, input } = value as { readonly type?: unknown; readonly input?: unknown }
      if (type === 'tool_use') texts.push(...listTodos(input))
      for (const each of Object.values(value)) collect(each)
    }
  }
  collect(messages)
  return texts
}

/** Lists the items of a todo list in the input of a tool call, each as JSON. */
function listTodos(input: unknown): readonly string[] {
  const { todos } = (input ?? {}) as { readonly todos?: unknown }
  return Array.isArray(todos)
    ? todos.map(({ content, status }: Record<string, unknown>) => JSON.stringify({ content, status }))
    : []
}
