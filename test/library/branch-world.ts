/** A session on disk with a model that says how many messages it was sent, for tests of branches. */
import type { Script } from '@tidemark/simulator'
import type { Session } from 'tidemark'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

/** A model that answers with how many messages it was sent. */
const counting: Script = ({ messages }) => ({
  blocks: [{ type: 'text', text: `Answer after ${messages.length} messages. ${'word '.repeat(2_000)}` }],
})

const SYSTEM = 'You are careful. '.repeat(600)

/** Without a home, the sessions are kept in memory. */
export function createBranchWorld(home?: string): TestTidemark {
  return createTestTidemark({
    script: counting,
    history: false,
    system: SYSTEM,
    seed: String(process.pid),
    ...(home === undefined ? {} : { home }),
  })
}

/** Runs the prompts. Throws if one of them fails. */
export async function say(session: Session, ...prompts: readonly string[]): Promise<void> {
  for (const prompt of prompts) {
    const outcome = await session.run(prompt, { tools: {} }).outcome
    if (!outcome.ok) throw new Error(outcome.message)
  }
}

/** The texts of the user in the next request. */
export function userTexts(session: Session): readonly string[] {
  return session
    .messages()
    .filter(({ role }) => role === 'user')
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
    .map((text) => /One|Two|Three|Four|Five/.exec(text)?.[0] ?? text)
}
