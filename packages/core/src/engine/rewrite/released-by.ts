/** What left the view with a compaction: whatever a host holds to be "already in the context" must be let go. */
import { showsFile } from '../../clear/chosen.ts'
import { advanceRegister } from '../../clear/register.ts'
import type { RegisterRules } from '../../clear/register-rules.ts'
import { emptyRegister, type Register } from '../../clear/register-state.ts'
import type { View } from '../../view/view.ts'
import type { Rewritten } from './cleanups.ts'

type Entries = View['entries']

/** A file stays known while a complete read or a whole write of it is among the messages kept. */
export function releasedBy(
  before: Entries,
  after: Entries,
  rules: RegisterRules,
): Pick<Rewritten, 'toolUseIds' | 'filePaths'> {
  const [had, has] = [registerOf(before, rules), registerOf(after, rules)]
  const ids = [...had.results].map(({ call }) => call.id)
  const shown = filesShown(has)
  return {
    toolUseIds: ids.filter((id) => has.resultPlaces.get(id) === undefined),
    filePaths: [...pathsIn(had)].filter((path) => !shown.has(path)),
  }
}

function registerOf(entries: Entries, rules: RegisterRules): Register {
  return advanceRegister(emptyRegister(rules), { entries })
}

function pathsIn({ calls }: Register): ReadonlySet<string> {
  return new Set([...calls].flatMap(({ path }) => (path === null ? [] : [path])))
}

function filesShown(register: Register): ReadonlySet<string> {
  const whole = [...register.results].filter((result) => showsFile(register, result))
  return new Set(whole.flatMap(({ call }) => call.path ?? []))
}
