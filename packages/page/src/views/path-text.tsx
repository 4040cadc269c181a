/** A path that does not fit: its folders are cut and not its name, or it is broken between folders and not inside a name. */

/** A path is one word with a slash in it, and no address. */
const PATH = /^(?!\w+:\/\/)(.*[/\\])([^/\\]+)$/

/** A text on one line. Of a path the end of the folders is cut first. */
export function ShortText({ text }: { readonly text: string }) {
  const [, folders, name] = /\s/.test(text) ? [] : (PATH.exec(text) ?? [])
  if (folders === undefined) return <span class="what">{text}</span>
  return (
    <span class="what path">
      <span class="folders">{folders}</span>
      <span>{name}</span>
    </span>
  )
}

/** A text on any number of lines, with a chance to break behind each folder. */
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
