/** One sentence in place of content, which is being loaded or could not be loaded. */
export function Notice({ text, isError = false }: { readonly text: string; readonly isError?: boolean }) {
  return (
    <p class={isError ? 'notice bad' : 'notice'} role={isError ? 'alert' : 'status'}>
      {text}
    </p>
  )
}
