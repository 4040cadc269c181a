/** Shows a path that may not fit: folders are cut before the name, or the path is broken between folders, never inside a name. */

/** A path is one word that contains a slash and is not a URL. */
const PATH = /^(?!\w+:\/\/)(.*[/\\])([^/\\]+)$/

/** Shows a text on one line, cut if it does not fit. Of a path, the folders are cut before the name. */
export function OneLineText({ text }: { readonly text: string }) {
  const [, folders, name] = /\s/.test(text) ? [] : (PATH.exec(text) ?? [])
  if (folders === undefined) return <span class="what">{text}</span>
  return (
    <span class="what path">
      <span class="folders">{folders}</span>
      <span>{name}</span>
    </span>
  )
}

/** Shows a text on any number of lines. A line may break after each folder of a path. */
export function BreakableText({ text }: { readonly text: string }) {
  return (
    <>
      {[...text.matchAll(/[^/\\]*[/\\]+|[^/\\]+/g)].map(({ 0: part, index: start }) => (
        <span key={start}>
          {part}
          <wbr />
        </span>
      ))}
    </>
  )
}
