/** Replays of recorded sessions: each rule broken, and the test that must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const SESSION = 'packages/tidemark/src/replay/recorded-session.test'
const LOG = 'packages/tidemark/src/replay/replay-log.test'
const COMMAND = 'packages/cli/src/commands/replay.test'

export const mutants: readonly Mutant[] = [
  {
    name: 'replay-recorded-cost-is-not-that-of-inspect',
    law: 'has the recorded cost that inspect shows',
    file: 'packages/tidemark/src/replay/replay-log.ts',
    find: 'usd: report.costUsd,',
    replace: 'usd: (report.costUsd ?? 0) * 1.001,',
    tests: [LOG, COMMAND],
  },
  {
    name: 'replay-stops-at-a-broken-log',
    law: 'leaves out a log that it cannot read or price',
    file: 'packages/cli/src/commands/replay.ts',
    find: "if (typeof result === 'string') unreadable.push({ file, why: result })",
    replace: "if (typeof result === 'string') throw new Error(result)",
    tests: [COMMAND],
  },
  {
    name: 'replay-takes-texts-of-the-program-for-prompts',
    law: 'tell what the user typed from texts of the program',
    file: 'packages/tidemark/src/replay/recorded-session.ts',
    find: 'const isPrompt = inputs.length > 0 && !blocks.some(isToolResult)',
    replace: 'const isPrompt = !isResponse && !blocks.some(isToolResult)',
    tests: [SESSION],
  },
  {
    name: 'replay-counts-parts-of-a-response-as-calls',
    law: 'count a response once',
    file: 'packages/tidemark/src/replay/recorded-session.ts',
    find: 'return isResults ? { step, index } : null',
    replace: 'return isResults && since.length === 0 ? { step, index } : null',
    tests: [SESSION],
  },
  {
    name: 'replay-takes-earlier-conversation-for-the-prefix',
    law: 'in a log that continues another one',
    file: 'packages/tidemark/src/replay/recorded-session.ts',
    find: 'const most = isContinued ? PREFIX_LIMITS.unmeasured : PREFIX_LIMITS.most',
    replace: 'const most = isContinued ? PREFIX_LIMITS.most : PREFIX_LIMITS.most',
    tests: [SESSION],
  },
  {
    name: 'replay-estimates-output-that-the-log-has',
    law: 'bills the output that the log has',
    file: 'packages/tidemark/src/replay/replay-session.ts',
    find: 'bill?.findOutput(step) ?? Math.ceil(estimate)',
    replace: 'Math.ceil(estimate)',
    tests: [LOG],
  },
  {
    name: 'watch-ignores-its-policy',
    law: 'follows the policy that it is given',
    file: 'packages/cli/src/commands/watch.ts',
    find: 'withWindow(policy?.policy ?? {}, window)',
    replace: 'withWindow({}, window)',
    tests: ['packages/cli/test/watch-process.test'],
  },
  {
    name: 'replay-leaves-out-subagents',
    law: 'has the calls and the cost of its subagents',
    file: 'packages/tidemark/src/replay/replay-log.ts',
    find: 'const sessions = [log, ...log.agents]',
    replace: 'const sessions = [log]',
    tests: [LOG],
  },
]
