export * from './button';
export { Icon as default } from "./icon";
export type { Props } from '../types';
