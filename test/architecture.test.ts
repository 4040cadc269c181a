/** The shape of the repository, held by test. What each check refuses is shown beside it, in scripts/architecture. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkCycles } from '../scripts/architecture/cycles.ts'
import {
  checkLinks,
  checkNamedFiles,
  checkNamedFolders,
  checkScripts,
  checkSnippets,
} from '../scripts/architecture/documents.ts'
import {
  checkCodecImports,
  checkFolders,
  checkPackages,
  checkPublicImports,
} from '../scripts/architecture/folders.ts'
import { checkLockfile } from '../scripts/architecture/lockfile.ts'
import {
  checkFunctionNames,
  checkNames,
  checkUniqueExports,
  checkUnusedExports,
} from '../scripts/architecture/names.ts'
import {
  checkBarrels,
  checkPublicNames,
  checkSurfaceSize,
  isPublicEntry,
  publicNames,
} from '../scripts/architecture/public-names.ts'
import { checkPurity } from '../scripts/architecture/purity.ts'
import { checkFolderBudgets, checkSizes, checkSmallFiles } from '../scripts/architecture/sizes.ts'
import { isTest, packageOf, tell } from '../scripts/architecture/source.ts'
import { checkLength, checkMachinePaths, checkVendorWords } from '../scripts/architecture/texts.ts'
import {
  dependenciesOf,
  filesUnder,
  PACKAGE_ORDER,
  PURE_PACKAGES,
  packageFolders,
  readEntries,
  readManifest,
  readSources,
  readText,
  readWorkspace,
} from '../scripts/architecture/tree.ts'
import folderBudgets from './folder-budgets.json' with { type: 'json' }
import committedNames from './public-names.json' with { type: 'json' }

/** Tables and schemas whose length is no fault, and why: path, or `path#function`. */
const LONG_BY_NATURE: ReadonlyMap<string, string> = new Map([
  ['mutants/breaks.ts', 'a table'],
  ['packages/simulator/test/openai-shapes.ts', 'recorded answers'],
])

/** Names that keep a word the rule refuses, and why. */
const NAMES_ALLOWED: ReadonlyMap<string, string> = new Map([
  ['RecordBase', 'the fields that every kind of record has; there is no plainer word'],
])

const FUNCTION_NAMES_ALLOWED: ReadonlyMap<string, string> = new Map([
  ['refused', 'session.refused(error) reports an event to the engine; the specification names it so'],
])

/** Files under 40 lines with one importer that stand alone all the same, and why. */
const SMALL_BY_NATURE: ReadonlyMap<string, string> = new Map([
  ['packages/agent/src/tools/search-worker.ts', 'the entry of a thread, which runs when it is loaded'],
  ['packages/agent/src/sample-project.ts', 'an entry, and its paths are right only directly below src'],
])

/** How many names an entry may have: what people import is small enough to read in one sitting. */
const SURFACE: Readonly<Record<string, number>> = {
  // Four more than 60: memoryFiles; NotesStore beside the other stores that a host may give; volatileSection and
  // SYSTEM_PROMPT_DYNAMIC_BOUNDARY, without which a system prompt of sections cannot be written.
  tidemark: 72,
  // Eight more than before the agent stood on it: where a session lies, who writes it, its export, and sums of reports.
  'tidemark/logs': 32,
  'tidemark/records': 24,
  'tidemark/project': 14,
  'tidemark/tools': 12,
  'tidemark/testing': 20,
  'tidemark/catalogue': 10,
  'tidemark/anthropic': 3,
  'tidemark/telemetry': 5,
  '@tidemark/simulator': 20,
}

/** Files that have words of one provider's protocol outside `wire`, and why. In core, only the neutral blocks have them. */
const PROTOCOL_WORDS_ALLOWED: Readonly<Record<'core' | 'tidemark', ReadonlyMap<string, string>>> = {
  core: new Map([
    ['packages/core/src/log/block.ts', 'the neutral blocks, and names of fields in the log'],
    ['packages/core/src/validate/content-rules.ts', 'a field of the neutral block of a compaction'],
    ...['policy/cache-policy.ts', 'policy/create-policy.ts', 'request/cache-ttl.ts'].map(
      (name) =>
        [`packages/core/src/${name}`, 'values that users may write in a policy, for short and long'] as const,
    ),
  ]),
  tidemark: new Map(
    [
      ['hooks/hook-events.ts', 'a field of the hooks that users have'],
      ...['cache-breaks.ts', 'logged-calls.ts', 'logged-requests.ts'].map(
        (name) => [`inspect/${name}`, 'fields in logs of other programs'] as const,
      ),
      ['logs/read-log.ts', 'fields in logs of other programs'],
      ['session/append.ts', 'how the log says that nothing was billed'],
      ...['content-attributes.ts', 'event-attributes.ts', 'metrics.ts', 'model-spans.ts'].map(
        (name) => [`telemetry/${name}`, 'names of OpenTelemetry'] as const,
      ),
      ...['anthropic.ts', 'openai.ts'].map(
        (name) => [`models/${name}`, 'the options of a model of this provider'] as const,
      ),
      ...['billed-cache.ts', 'engine-policy.ts'].map(
        (name) => [`replay/${name}`, 'plays the provider whose logs are replayed'] as const,
      ),
    ].map(([name, why]) => [`packages/tidemark/src/${name}`, why] as const),
  ),
}

const PROGRAMS = 'texts and tools of other programs, by which their logs are read'

/** Files of core that have names of vendors or of their programs, and why. */
const VENDOR_NAMES_ALLOWED: ReadonlyMap<string, string> = new Map(
  [
    ...[
      'host-texts.ts',
      'model-texts.ts',
      'todo-list.ts',
      'tool-calls.ts',
      'tool-runs.ts',
      'user-input.ts',
    ].map((name) => [`facts/${name}`, PROGRAMS] as const),
    ['notes/work-sections.ts', 'names of files that users have'],
    ['policy/notes-policy.ts', 'names of files that users have'],
    ['policy/presets.ts', 'the name of a preset'],
    ['policy/switches.ts', 'an environment variable of another program'],
    ['text/redact.ts', 'keys that are redacted, by their vendor'],
  ].map(([name, why]) => [`packages/core/src/${name}`, why] as const),
)

/** Paths that tests make up. */
const INVENTED_PATHS: ReadonlySet<string> = new Set(['/home/blobs', '/home/sessions', '/home/user'])

const root = fileURLToPath(new URL('..', import.meta.url))
const files = filesUnder(root)
const typescript = readSources(
  root,
  files.filter((path) => /\.tsx?$/.test(path)),
)
const inPackages = typescript.filter(({ path }) => packageOf(path) !== null)
const shipped = inPackages.filter(
  ({ path }) => /^packages\/[^/]+\/(src|testing)\//.test(path) && !isTest(path),
)
const entries = readEntries(root)
const publicEntries = new Map([...entries].filter(([entry]) => isPublicEntry(entry)))

describe('imports', () => {
  it('point to the same folder or an earlier one, in every package', () => {
    expect(tell(checkFolders(inPackages))).toBe('')
  })

  it('between packages follow the package order and are declared', () => {
    expect(tell(checkPackages(inPackages, readWorkspace(root)))).toBe('')
  })

  it('of the agent, and of the terminal, are public entries of the library', () => {
    expect(tell(checkPublicImports(inPackages))).toBe('')
  })

  it('go in no circle, types included', () => {
    expect(tell(checkCycles(typescript))).toBe('')
  })

  it('of the simulator take no codec of wire but those of the Messages API, and its OpenAI part none at all', () => {
    const simulator = shipped.filter(({ path }) => packageOf(path) === 'simulator')
    expect(tell(checkCodecImports(simulator))).toBe('')
  })

  it('are never handed on by an inner file', () => {
    expect(tell(checkBarrels(typescript, entries))).toBe('')
  })
})

describe('packages', () => {
  it('are all in the package order', () => {
    expect(packageFolders(root).filter((folder) => !PACKAGE_ORDER.includes(folder))).toEqual([])
  })

  it('core depends on nothing, wire on core alone', () => {
    const dependencies = ['core', 'wire'].map((folder) =>
      dependenciesOf(readManifest(root, `packages/${folder}`)),
    )
    expect(dependencies).toEqual([[], ['@tidemark/core']])
  })

  it('export exactly the committed names (after a change that is meant: npm run names)', () => {
    expect(checkPublicNames(publicNames(typescript, publicEntries), committedNames)).toEqual([])
  })

  it('have a surface that can be read in one sitting', () => {
    expect(checkSurfaceSize(publicNames(typescript, entries), SURFACE)).toEqual([])
  })

  it('that are pure touch no clock, chance, platform or locale', () => {
    expect(tell(checkPurity(shipped.filter(({ path }) => PURE_PACKAGES.has(packageOf(path) ?? ''))))).toBe('')
  })
})

describe('files', () => {
  it('and functions are short', () => {
    const limits = { fileLines: 600, functionLines: 60, excepted: LONG_BY_NATURE }
    expect(tell(checkSizes(typescript, limits))).toBe('')
  })

  it('stay within the budget of lines of their folder, which only a decision raises (test/folder-budgets.json)', () => {
    expect(tell(checkFolderBudgets(shipped, folderBudgets))).toBe('')
  })

  it('and exports have names that say what they are', () => {
    expect(tell(checkNames(typescript, NAMES_ALLOWED))).toBe('')
  })

  it('under 40 lines have more than one importer', () => {
    expect(tell(checkSmallFiles(shipped, 40, SMALL_BY_NATURE))).toBe('')
  })

  it('name functions by verbs', () => {
    const limits = { participleShare: 0.03, ofShare: 0.01, allowed: FUNCTION_NAMES_ALLOWED }
    expect(tell(checkFunctionNames(shipped, limits))).toBe('')
  })

  it('export a name once in a package', () => {
    expect(tell(checkUniqueExports(shipped))).toBe('')
  })

  it('export only what another file imports', () => {
    expect(tell(checkUnusedExports(shipped, typescript, new Set(entries.values())))).toBe('')
  })

  it.each(['core', 'tidemark'] as const)(
    'of %s have no words of one protocol, but for those listed',
    (name) => {
      const sources = shipped.filter(({ path }) => path.startsWith(`packages/${name}/src/`))
      expect(tell(checkVendorWords(sources, 'protocol', PROTOCOL_WORDS_ALLOWED[name]))).toBe('')
    },
  )

  it('of core have no names of vendors, but for those listed', () => {
    const core = shipped.filter(({ path }) => path.startsWith('packages/core/src/'))
    expect(tell(checkVendorWords(core, 'vendor', VENDOR_NAMES_ALLOWED))).toBe('')
  })

  it('hold no path of one machine', () => {
    expect(tell(checkMachinePaths(readSources(root, files), INVENTED_PATHS))).toBe('')
  })

  it('the lockfile names no registry, hashes every package and misses no platform', () => {
    expect(tell(checkLockfile(JSON.parse(readText(root, 'package-lock.json'))))).toBe('')
  })
})

describe('documents', () => {
  const documents = readSources(
    root,
    files.filter((path) => path.endsWith('.md')),
  )

  it('name scripts that are there', () => {
    const scripts = new Set(Object.keys(readManifest(root, '').scripts ?? {}))
    expect(tell(documents.flatMap((document) => checkScripts(document, scripts)))).toBe('')
  })

  it('link to what is there', () => {
    expect(tell(documents.flatMap((document) => checkLinks(document, new Set(files))))).toBe('')
  })

  it('show imports of public names', () => {
    const names = publicNames(typescript, publicEntries)
    expect(tell(documents.flatMap((document) => checkSnippets(document, names)))).toBe('')
  })

  it('are short: the README 120 lines, ARCHITECTURE.md 190', () => {
    const read = (path: string) => ({ path, text: readText(root, path) })
    const findings = [...checkLength(read('README.md'), 120), ...checkLength(read('ARCHITECTURE.md'), 190)]
    expect(tell(findings)).toBe('')
  })

  it('ARCHITECTURE.md names every folder of the packages, and only files that are there', () => {
    const document = { path: 'ARCHITECTURE.md', text: readText(root, 'ARCHITECTURE.md') }
    expect(tell([...checkNamedFolders(document, files), ...checkNamedFiles(document, new Set(files))])).toBe(
      '',
    )
  })

  it('the test command of the README is what CI runs', () => {
    const command = 'npm ci && npm test'
    const rows = (path: string): readonly string[] => readText(root, path).split('\n')
    expect([rows('README.md').includes(command), rows('.ci/run').includes(command)]).toEqual([true, true])
  })
})
