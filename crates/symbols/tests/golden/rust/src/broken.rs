pub fn before_the_break() {}

pub fn broken(a: u32, -> {
    let x = ;
}

pub struct AfterTheBreak {
    pub field: u32,
}
