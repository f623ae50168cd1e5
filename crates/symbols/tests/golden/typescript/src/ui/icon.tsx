export function Icon({ name }: { name: string }): JSX.Element {
  return <i className={name} />;
}
