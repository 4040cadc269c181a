/** A case of a conformance suite: a name and something that throws if it does not hold. Any test runner can run it. */
export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}

/** Makes cases that each get a subject of their own, ended afterwards whatever happens. */
export function casesFor<Subject>(
  make: () => Subject | Promise<Subject>,
  end: (subject: Subject) => unknown,
  checks: Readonly<Record<string, (subject: Subject) => void | Promise<void>>>,
): readonly ConformanceCase[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    async run() {
      const subject = await make()
      try {
        await check(subject)
      } finally {
        await end(subject)
      }
    },
  }))
}
