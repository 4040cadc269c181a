/** The sandbox of commands, the key of the model and redirects: each rule broken, and the test that must notice. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const SANDBOX = 'packages/cli/test/sandbox.test'

export const mutants: readonly Mutant[] = [
  {
    name: 'folder-above-a-guarded-file-can-be-renamed',
    law: 'cannot change a hook script',
    file: 'packages/cli/src/sandbox/mount-plan.ts',
    find: "if (places.get(above) === 'write') for (const folder of between) pinned.set(folder, 'write')",
    replace: 'void between',
    tests: [SANDBOX],
  },
  {
    name: 'sockets-of-services-are-open-in-the-sandbox',
    law: 'reaches no network and no socket of a service on this machine',
    file: 'packages/cli/src/sandbox/seccomp-filter.ts',
    find: 'const OPEN_FAMILIES = [2, 10, 16]',
    replace: 'const OPEN_FAMILIES = [1, 2, 10, 16]',
    tests: [SANDBOX],
  },
  {
    name: 'new-guarded-files-stay',
    law: 'that creates a repository has it renamed',
    file: 'packages/cli/src/sandbox/guarded-files.ts',
    find: '...after.readOnly.filter((path) => !known.has(path)),',
    replace: '...after.readOnly.filter((path) => known.has(path)),',
    tests: [SANDBOX],
  },
  {
    name: 'what-runs-in-the-background-passes-for-the-users-own',
    law: 'in the background has what it created renamed at the latest before the next command',
    file: 'packages/cli/src/sandbox/sandbox.ts',
    find: 'await sweep()',
    replace: 'void sweep',
    tests: [SANDBOX],
  },
  {
    name: 'a-sandbox-that-does-not-confine-is-used',
    law: 'is told in one line with what to install',
    file: 'packages/cli/src/sandbox/sandbox.ts',
    find: "if (existsSync(outside)) return 'a command could write outside of it'",
    replace: 'void existsSync(outside)',
    tests: [SANDBOX],
  },
  {
    name: 'a-rule-allows-a-command-outside-the-sandbox',
    law: 'is refused where nobody can be asked, whatever is allowed',
    file: 'packages/cli/src/agent/permissions.ts',
    find: "? { decision: 'ask', reason: 'It runs outside the sandbox.', suggestions: [] }",
    replace: "? { decision: 'allow', reason: 'It runs outside the sandbox.', suggestions: [] }",
    tests: [SANDBOX],
  },
  {
    name: 'the-agent-reads-a-hidden-file-for-a-command',
    law: 'cannot make the agent read a hidden file for it',
    file: 'packages/cli/src/tools/bash-tools.ts',
    find: 'open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)',
    replace: 'open(path, O_RDONLY | O_NONBLOCK)',
    tests: [SANDBOX],
  },
  {
    name: 'the-key-follows-a-redirect',
    law: 'is an error that names the other host',
    file: 'packages/tidemark/src/models/redirects.ts',
    find: "{ redirect: 'manual' }",
    replace: "{ redirect: 'follow' }",
    tests: ['packages/tidemark/test/redirects.test'],
  },
  {
    name: 'the-key-in-base64-is-shown',
    law: 'is hidden as it is, and in base64 of any text around it',
    file: 'packages/tidemark/src/models/hidden-key.ts',
    find: 'Buffer.alloc(place)',
    replace: 'Buffer.alloc(0)',
    tests: ['packages/tidemark/src/models/hidden-key.test'],
  },
]
