/**
 * Programs that a repository names for Git to run: hooks, and keys of its own configuration such as `core.fsmonitor` and
 * `filter.x.clean`. They come with a folder that was copied or unpacked, and run at a harmless `git status`, so that they
 * count only after the user has trusted them, by their content.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isPathWithin, toShownPath } from '../tools/tool-paths.ts'
import type { TrustItem } from './folder-trust.ts'
import {
  type ConfigEntry,
  findRepository,
  isRepository,
  listGitFolders,
  readGitConfig,
  readText,
} from './git-config.ts'
import { walkFolders } from './protected-targets.ts'

/**
 * Keys that name no program, by section: those of Git, and sections of other tools that Git does not read. What is not
 * listed is taken for a program, since each version of Git has new ones.
 */
const HARMLESS_KEYS: ReadonlyMap<string, ReadonlySet<string> | 'all'> = new Map(
  Object.entries({
    ...Object.fromEntries(
      'user author committer color advice status log pull push fetch rebase rerere gc pack index feature maintenance extensions commit tag column blame checkout clean grep i18n notes transfer versionsort worktree http apply am add format splitindex stash showbranch commitgraph fsck gui gitflow vscode github gitlab hub'
        .split(' ')
        .map((section) => [section, 'all' as const]),
    ),
    ...Object.fromEntries(
      Object.entries({
        core: 'repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf hidedotfiles longpaths untrackedcache preloadindex quotepath abbrev sparsecheckout sparsecheckoutcone sharedrepository commentchar commentstring compression loosecompression bigfilethreshold packedgitlimit packedgitwindowsize deltabasecachelimit fscache protecthfs protectntfs checkstat trustctime whitespace excludesfile multipackindex commitgraph fsync fsyncmethod fsyncobjectfiles checkroundtripencoding notesref warnambiguousrefs maxtreedepth',
        remote:
          'url pushurl fetch push tagopt mirror prune prunetags promisor partialclonefilter skipdefaultupdate skipfetchall followremotehead gh-resolved projectnumber proxy proxyauthmethod serveroption',
        diff: 'algorithm renames renamelimit mnemonicprefix noprefix colormoved colormovedws context interhunkcontext ignoresubmodules indentheuristic submodule suppressblankempty wordregex autorefreshindex dirstat statgraphwidth statnamewidth orderfile relative wserrorhighlight xfuncname funcname binary cachetextconv',
        merge:
          'conflictstyle ff renames renamelimit verifysignatures autostash log stat branchdesc defaulttoupstream directoryrenames name recursive',
        submodule: 'url active path branch fetchrecursesubmodules ignore recurse propagatebranches shallow',
        credential: 'username usehttppath',
        gpg: 'format',
        init: 'defaultbranch',
        lfs: 'url pushurl repositoryformatversion access locksverify fetchinclude fetchexclude allowincompletepush skipdownloaderrors',
        url: 'insteadof pushinsteadof',
        include: 'path',
        includeif: 'path',
      }).map(([section, keys]) => [section, new Set(keys.split(' '))]),
    ),
  }),
)

/** Keys that are harmless with these values. */
const HARMLESS_VALUES: readonly { readonly key: RegExp; readonly value: RegExp }[] = [
  { key: /^core\.fsmonitor$/, value: /^(?:true|false|yes|no|on|off|1|0)$/i },
  { key: /^pager\./, value: /^(?:true|false|yes|no|on|off|1|0)$/i },
  { key: /^branch\.(?!.*\.mergeoptions$)/, value: /^(?!\w+::)/ },
  { key: /^submodule\..*\.update$/, value: /^(?:checkout|rebase|merge|none)$/ },
  { key: /^credential\..*helper$|^credential\.helper$/, value: /^[a-z]*(?:-[a-z]+)*$/ },
  {
    key: /^filter\.lfs\.(?:clean|smudge|process|required)$/,
    value: /^(?:git-lfs (?:clean|smudge) -- %f|git-lfs filter-process|true)$/,
  },
]

function isHarmless({ key, section, name, value }: ConfigEntry, place: GitPlace): boolean {
  if (HARMLESS_VALUES.some((each) => each.key.test(key) && each.value.test(value))) return true
  // A submodule has its work tree in the project; elsewhere, a checkout would write where nobody expects it.
  if (key === 'core.worktree') return isPathWithin(resolve(place.gitFolder, value), place.root)
  // An address such as `ext::sh -c …` runs its words.
  if ((section === 'remote' && /^\w+::/.test(value)) || (section === 'url' && /^url\.\w+::/.test(key)))
    return false
  const known = HARMLESS_KEYS.get(section)
  return known === 'all' || known?.has(name) === true
}

interface GitPlace {
  readonly gitFolder: string
  /** The folder of the project, in which paths are shown and work trees may be. */
  readonly root: string
}

/** Returns what Git would run that the repositories of a folder name: those around it, and those in it. */
export function listGitPrograms(folder: string): readonly TrustItem[] {
  const root = findRepository(folder) ?? folder
  const items = listRepositories(folder, root).flatMap((gitFolder) => listOwnPrograms({ gitFolder, root }))
  return items.slice(0, MOST_ITEMS)
}

const MOST_ITEMS = 100

/** Returns the folders of Git: of the repository, of work trees that share it, of submodules, and of repositories inside. */
function listRepositories(folder: string, root: string): readonly string[] {
  const found = new Set<string>()
  const add = (at: string): void => {
    const inner = existsSync(join(at, '.git'))
      ? listGitFolders(join(at, '.git'))
      : isRepository(at)
        ? [at]
        : []
    for (const each of inner) found.add(each)
  }
  add(root)
  walkFolders(folder, (name, at) => {
    if (name === '.git' || name === 'HEAD') add(at)
    return name !== '.git' && name !== 'node_modules'
  })
  for (const each of [...found])
    walkFolders(join(each, 'modules'), (name, at) => {
      if (name === 'config') found.add(at)
      return !/^(?:objects|refs|logs|hooks)$/.test(name)
    })
  return [...found]
}

const MOST_FILES = 20

function listOwnPrograms(place: GitPlace): readonly TrustItem[] {
  const { gitFolder, root } = place
  const files = [join(gitFolder, 'config'), join(gitFolder, 'config.worktree')]
  const items: TrustItem[] = []
  let hooks = join(gitFolder, 'hooks')
  // Included files are added while the list is read.
  for (let at = 0; at < files.length && at < MOST_FILES; at += 1) {
    const file = files[at] ?? ''
    const text = readText(file)
    if (text === null && existsSync(file))
      items.push({ setting: 'git', parts: [toShownPath(file, root), 'cannot be read'] })
    for (const entry of readGitConfig(text ?? '')) {
      const { key, value } = entry
      // What is in the home is the user's own.
      const isIncluded = entry.section.startsWith('include') && entry.name === 'path' && !/^[~%]/.test(value)
      if (isIncluded) files.push(resolve(dirname(file), value))
      if (key === 'core.hookspath') hooks = resolve(findWorkTree(place), value)
      else if (!isHarmless(entry, place)) items.push(toItem(entry, place))
    }
  }
  return [...items, ...listHooks(hooks, root)]
}

function findWorkTree({ gitFolder, root }: GitPlace): string {
  return basename(gitFolder) === '.git' ? dirname(gitFolder) : root
}

function toItem({ key, value }: ConfigEntry, place: GitPlace): TrustItem {
  const { root } = place
  const named = value.split(/[\s!;&|()'"]+/).flatMap((word) => {
    const path = resolve(findWorkTree(place), word)
    return word !== '' && isPathWithin(path, root) && isFile(path) ? [path] : []
  })
  return withFiles({ setting: 'git', parts: [key, value] }, named, root)
}

/** Returns an item for each hook. With husky, those that run are beside the folder that Git is told of. */
function listHooks(folder: string, root: string): readonly TrustItem[] {
  const folders = basename(folder) === '_' ? [folder, dirname(folder)] : [folder]
  return folders.flatMap((each) =>
    listNames(each)
      .filter((name) => !name.endsWith('.sample') && isFile(join(each, name)))
      .filter((name) => basename(each) !== 'hooks' || isExecutable(join(each, name)))
      .map((name) => withFiles({ setting: 'git', parts: ['hook'] }, [join(each, name)], root)),
  )
}

function withFiles(item: TrustItem, paths: readonly string[], root: string): TrustItem {
  if (paths.length === 0) return item
  return { ...item, files: paths.map((path) => ({ path: toShownPath(path, root), hash: hashFile(path) })) }
}

function hashFile(path: string): string {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('hex')
  } catch {
    return 'unreadable'
  }
}

function listNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder).slice(0, MOST_ITEMS)
  } catch {
    return []
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

function isExecutable(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0
}
