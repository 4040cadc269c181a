const WORKING_TREE = /^(.+?)[/\\](?:\.worktrees|\.claude[/\\]worktrees)[/\\]/

/** The folder of the repository whose work is done in this one: a working tree that lies hidden in it is part of it. */
export function repositoryOf(folder: string): string {
  return WORKING_TREE.exec(folder)?.[1] ?? folder
}
