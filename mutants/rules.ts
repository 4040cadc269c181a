/** Rules for commands and paths: what a hostile repository could use if they were broken. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const AGENT = 'packages/cli/src/agent'
const ATTACKS = ['packages/cli/test/attacks/rule-attacks']
const CHAINS = ['packages/cli/test/attacks/chain-attacks']

export const mutants: readonly Mutant[] = [
  {
    name: 'unknown-option-fits-a-prefix',
    law: 'options that write a file or run a program',
    file: `${AGENT}/command-rules.ts`,
    find: 'if (rest.some((word) => isOption(word) && !isKnownOption(word, row))) return false',
    replace: '',
    tests: ATTACKS,
  },
  {
    name: 'assignment-fits-a-star',
    law: 'assignments in front of an allowed command',
    file: `${AGENT}/command-rules.ts`,
    find: '(program > 0 && named <= program)',
    replace: 'program > 1_000',
    tests: ATTACKS,
  },
  {
    name: 'expanded-word-is-no-option',
    law: 'words that become options when the shell expands them',
    file: `${AGENT}/command-rules.ts`,
    find: "return mayBecomeOption || (text.startsWith('-')",
    replace: "return (text.startsWith('-')",
    tests: ATTACKS,
  },
  {
    name: 'builtin-reads-its-arguments-again',
    law: 'builtins that evaluate their arguments',
    file: `${AGENT}/command-rules.ts`,
    find: '    readsArgumentsAgain(part) ||\n',
    replace: '',
    tests: ATTACKS,
  },
  {
    name: 'rule-holds-in-every-folder',
    law: 'an allowed command in another folder',
    file: `${AGENT}/command-rules.ts`,
    find: "if (!isPlaced && place !== '' && !isAnywhere) return false",
    replace: '',
    tests: ATTACKS,
  },
  {
    name: 'denied-word-in-a-substitution',
    law: 'a denied command in another spelling',
    file: `${AGENT}/command-rules.ts`,
    find: 'return (!parsed.isPlain || runsText) && mentionsWords(pattern, command)',
    replace: 'return false',
    tests: ATTACKS,
  },
  {
    name: 'project-excepts-a-protected-path',
    law: 'and a trusted project cannot',
    file: `${AGENT}/agent-permissions.ts`,
    find: 'ownRules: settings.ownRules ?? [],',
    replace: 'ownRules: settings.permissions.allow,',
    tests: CHAINS,
  },
  {
    name: 'bare-repository-is-completed',
    law: 'the names that together make a folder a bare repository',
    file: `${AGENT}/protected-paths.ts`,
    find: "if (has('HEAD') && REPOSITORY_PARTS.some(has)) return true",
    replace: '',
    tests: ATTACKS,
  },
  {
    name: 'typed-ahead-answers-a-question',
    law: 'what was typed before a question is shown does not answer it',
    file: 'packages/cli/src/terminal.ts',
    find: "if ((await discardTypedAhead(from)).includes('\\u0003')) {",
    replace: 'if (from === undefined) {',
    tests: ['packages/cli/src/terminal.test'],
  },
  {
    name: 'hook-script-behind-a-launcher',
    law: 'the script of the hook is part of it, however the hook calls it',
    file: `${AGENT}/hook-files.ts`,
    find: 'const names = [...new Set(words.flatMap(listPathNames))]',
    replace: 'const names = [...new Set(words.slice(0, 1).flatMap(listPathNames))]',
    tests: ['packages/cli/src/agent/hook-files.test'],
  },
]
