import { Props, settle } from '../types';
import { Icon } from '@ui/icon';
import React from 'react';

export const Button: React.FC<Props> = ({ title, onClose }) => {
  const [open, setOpen] = React.useState(false);
  return <Icon name={settle(title)}>{open}</Icon>;
};

export default React.memo(Button);
