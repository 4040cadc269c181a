/** Skills in use: newest first, each cut with a note that its text can be read again. */
import type { Carrier } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

export interface InvokedSkill {
  readonly name: string
  readonly text: string
  /** Where it can be read again. */
  readonly path?: string
}

/** `read` gives them as the host has them, the one used last first. */
export function skillsCarrier(read: () => Given<readonly InvokedSkill[]>): Carrier {
  return simpleCarrier({
    name: 'skills',
    kind: 'skills',
    // The call that brings a skill in shows its text.
    tellsChanges: false,
    isWhole: false,
    limit: ({ budgets }) => ({ ...budgets.skills, count: Number.POSITIVE_INFINITY }),
    read: async () =>
      (await read()).map(({ name, text, path }) => ({
        id: name,
        attachment: { type: 'invoked_skills', name, ...(path === undefined ? {} : { path }), content: text },
        source: path ?? name,
        sheddable: 'skills' as const,
        cutNote: (shown: string, whole: string) =>
          `[cut: ${shown.length} of ${whole.length} characters are shown; read ${path ?? `the skill "${name}"`} again for the full text]`,
      })),
  })
}
