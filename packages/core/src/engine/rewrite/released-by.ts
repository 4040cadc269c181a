/** What left the view with a compaction: whatever a host holds to be "already in the context" must be let go. */
import { advanceRegister } from '../../clear/register.ts'
import type { RegisterRules } from '../../clear/register-rules.ts'
import { emptyRegister, type Register } from '../../clear/register-state.ts'
import type { View } from '../../view/view.ts'
import type { Rewritten } from './cleanups.ts'

type Entries = View['entries']

/** What is still among the messages kept stays known. */
export function releasedBy(
  before: Entries,
  after: Entries,
  rules: RegisterRules,
): Pick<Rewritten, 'toolUseIds' | 'filePaths'> {
  const [had, has] = [registerOf(before, rules), registerOf(after, rules)]
  const ids = [...had.results].map(({ call }) => call.id)
  const paths = pathsIn(has)
  return {
    toolUseIds: ids.filter((id) => has.resultPlaces.get(id) === undefined),
    filePaths: [...pathsIn(had)].filter((path) => !paths.has(path)),
  }
}

function registerOf(entries: Entries, rules: RegisterRules): Register {
  return advanceRegister(emptyRegister(rules), { entries })
}

function pathsIn({ calls }: Register): ReadonlySet<string> {
  return new Set([...calls].flatMap(({ path }) => (path === null ? [] : [path])))
}
