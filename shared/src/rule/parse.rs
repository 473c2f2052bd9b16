//! Words and signs into an expression of known type.

use std::ops::Range;

use regex::Regex;

use super::lex::{Token, error, lex};
use super::{MOST_BYTES, MOST_PARTS, RuleError};

/// How deep expressions may stand in each other.
const MOST_DEPTH: u32 = 48;

/// A whole expression of one of the three types.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Text(Text),
    Number(Number),
    Truth(Truth),
}

/// What has two ways to its value.
#[derive(Clone, Debug)]
pub(super) enum Either<T> {
    If(Truth, T, T),
    Default(T, T),
}

/// A text that the facts hold.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Answer,
    Prompt,
    NextState,
    Metadata(Box<str>),
}

#[derive(Clone, Debug)]
pub(super) enum Text {
    Literal(Box<str>),
    Name(Name),
    Trim(Box<Text>),
    Lower(Box<Text>),
    Capture(Box<Text>, Regex, usize),
    Either(Box<Either<Text>>),
}

#[derive(Clone, Debug)]
pub(super) enum Number {
    Literal(f64),
    Read(Box<Text>),
    Length(Box<Text>),
    /// Of the second text's characters, the share that the first has at their places.
    Agreement(Box<(Text, Text)>),
    Negative(Box<Number>),
    Abs(Box<Number>),
    Two(Arithmetic, Box<(Number, Number)>),
    Either(Box<Either<Number>>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
}

#[derive(Clone, Debug)]
pub(super) enum Truth {
    Literal(bool),
    Not(Box<Truth>),
    And(Box<(Truth, Truth)>),
    Or(Box<(Truth, Truth)>),
    SameText(Box<(Text, Text)>),
    BothOrNeither(Box<(Truth, Truth)>),
    Compare(Comparison, Box<(Number, Number)>),
    Part(Part, Box<(Text, Text)>),
    Matches(Box<Text>, Regex),
    Has(Name),
    Either(Box<Either<Truth>>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal,
    Less,
    AtMost,
}

/// Where one text is in another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Anywhere,
    Start,
    End,
}

/// An expression with its place.
pub(super) struct Placed {
    pub(super) expression: Expression,
    pub(super) at: Range<usize>,
}

impl Placed {
    fn kind(&self) -> &'static str {
        match self.expression {
            Expression::Text(_) => "a text",
            Expression::Number(_) => "a number",
            Expression::Truth(_) => "true or false",
        }
    }

    fn wrong(&self, wanted: &str, help: &str) -> RuleError {
        error(self.at.clone(), &format!("this is {}, not {wanted}", self.kind()), help)
    }

    pub(super) fn text(self) -> Result<Text, RuleError> {
        match self.expression {
            Expression::Text(text) => Ok(text),
            _ => Err(self.wrong("a text", "texts are `answer`, `metadata.KEY`, \"...\"")),
        }
    }

    pub(super) fn number(self) -> Result<Number, RuleError> {
        match self.expression {
            Expression::Number(number) => Ok(number),
            Expression::Text(_) => Err(self.wrong("a number", "read it with `number(...)`")),
            Expression::Truth(_) => {
                Err(self.wrong("a number", "write `if ... then 1 else 0` around it"))
            }
        }
    }

    pub(super) fn truth(self) -> Result<Truth, RuleError> {
        match self.expression {
            Expression::Truth(truth) => Ok(truth),
            _ => Err(self.wrong("true or false", "compare it with something, as in `... == 1`")),
        }
    }
}

/// Reads an expression from left to right, by the binding strength of its operators.
pub(super) struct Parser<'t> {
    tokens: Vec<(Token<'t>, Range<usize>)>,
    next: usize,
    depth: u32,
    parts: usize,
    pub(super) reads_next_state: bool,
}

impl<'t> Parser<'t> {
    /// The expression, and whether it asks for what followed the turn.
    pub(super) fn read(text: &'t str) -> Result<(Expression, bool), RuleError> {
        if text.len() > MOST_BYTES {
            let message = format!("the rule has {} bytes; at most {MOST_BYTES} can be", text.len());
            return Err(error(0..text.len(), &message, "judge with an endpoint, or write less"));
        }
        let mut parser =
            Parser { tokens: lex(text)?, next: 0, depth: 0, parts: 0, reads_next_state: false };
        let placed = parser.expression(0)?;
        match parser.peek() {
            Token::End => Ok((placed.expression, parser.reads_next_state)),
            _ => Err(parser.unexpected("put an operator such as `and` or `+` before it")),
        }
    }

    pub(super) fn peek(&self) -> Token<'t> {
        self.tokens.get(self.next).map_or(Token::End, |(token, _)| *token)
    }

    /// Where the next token is.
    pub(super) fn place(&self) -> Range<usize> {
        let last = self.tokens.last().map_or(0..0, |(_, at)| at.clone());
        self.tokens.get(self.next).map_or(last, |(_, at)| at.clone())
    }

    /// Where the token before ended.
    pub(super) fn reached(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |(_, at)| at.end)
    }

    pub(super) fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len());
    }

    /// Takes the token, if it is the next.
    pub(super) fn takes(&mut self, token: Token<'_>) -> bool {
        let is = self.peek() == token;
        if is {
            self.advance();
        }
        is
    }

    pub(super) fn expect(&mut self, token: Token<'_>, shown: &str) -> Result<(), RuleError> {
        if self.takes(token) { Ok(()) } else { Err(self.unexpected(&format!("write `{shown}`"))) }
    }

    pub(super) fn unexpected(&self, help: &str) -> RuleError {
        let message = match self.peek() {
            Token::End => "the rule ends too early",
            _ => "this cannot stand here",
        };
        error(self.place(), message, help)
    }

    /// An operation more; a rule has a bounded number.
    pub(super) fn part(&mut self) -> Result<(), RuleError> {
        self.parts += 1;
        if self.parts <= MOST_PARTS {
            return Ok(());
        }
        let message = format!("the rule has more than {MOST_PARTS} parts");
        Err(error(self.place(), &message, "judge with an endpoint, or write less"))
    }

    /// An expression whose operators bind at least as strongly as `strength`.
    pub(super) fn expression(&mut self, strength: u8) -> Result<Placed, RuleError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(error(self.place(), "the rule is nested too deep", "write it flatter"));
        }
        let mut left = self.prefix()?;
        while let Some((operator, binds)) = self.operator().filter(|(_, binds)| *binds >= strength)
        {
            self.advance();
            self.part()?;
            let right = self.expression(binds + 1)?;
            let at = left.at.start..right.at.end;
            left = Placed { expression: join(operator, left, right)?, at };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that comes next, and how strongly it binds.
    fn operator(&self) -> Option<(&'t str, u8)> {
        let operator = match self.peek() {
            Token::Word(word) => word,
            Token::Sign(sign) => sign,
            _ => return None,
        };
        let strength = match operator {
            "or" => 1,
            "and" => 2,
            "==" | "!=" | "<" | "<=" | ">" | ">=" => 4,
            "+" | "-" => 5,
            "*" | "/" => 6,
            _ => return None,
        };
        Some((operator, strength))
    }

    /// What stands before any operator.
    fn prefix(&mut self) -> Result<Placed, RuleError> {
        self.part()?;
        let start = self.place().start;
        let token = self.peek();
        self.advance();
        let expression = match token {
            Token::Number(number) => Expression::Number(Number::Literal(number)),
            Token::Text(text) => Expression::Text(Text::Literal(text.into())),
            Token::Sign("(") => {
                let inner = self.expression(0)?;
                self.expect(Token::Sign(")"), ")")?;
                inner.expression
            }
            Token::Sign("-") => {
                let inner = self.expression(7)?.number()?;
                Expression::Number(Number::Negative(Box::new(inner)))
            }
            Token::Word("not") => {
                Expression::Truth(Truth::Not(Box::new(self.expression(3)?.truth()?)))
            }
            Token::Word("if") => self.choice()?,
            Token::Word(word) => self.word(word, start)?,
            Token::Sign(_) | Token::End => {
                self.next -= 1;
                let help = "write a name such as `answer`, a number, or a text in quotes";
                return Err(self.unexpected(help));
            }
        };
        Ok(Placed { expression, at: start..self.reached() })
    }

    fn choice(&mut self) -> Result<Expression, RuleError> {
        let condition = self.expression(0)?.truth()?;
        self.expect(Token::Word("then"), "then")?;
        let one = self.expression(0)?;
        self.expect(Token::Word("else"), "else")?;
        let other = self.expression(0)?;
        Ok(match one.expression {
            Expression::Text(one) => {
                Expression::Text(Text::Either(Box::new(Either::If(condition, one, other.text()?))))
            }
            Expression::Number(one) => Expression::Number(Number::Either(Box::new(Either::If(
                condition,
                one,
                other.number()?,
            )))),
            Expression::Truth(one) => Expression::Truth(Truth::Either(Box::new(Either::If(
                condition,
                one,
                other.truth()?,
            )))),
        })
    }
}

/// Two expressions and what is between them.
fn join(operator: &str, left: Placed, right: Placed) -> Result<Expression, RuleError> {
    use Arithmetic::{Add, Divide, Multiply, Subtract};
    let arithmetic = |operation, left: Placed, right: Placed| {
        let both = Box::new((left.number()?, right.number()?));
        Ok(Expression::Number(Number::Two(operation, both)))
    };
    let compare = |comparison, left: Placed, right: Placed| {
        let both = Box::new((left.number()?, right.number()?));
        Ok(Expression::Truth(Truth::Compare(comparison, both)))
    };
    match operator {
        "or" => Ok(Expression::Truth(Truth::Or(Box::new((left.truth()?, right.truth()?))))),
        "and" => Ok(Expression::Truth(Truth::And(Box::new((left.truth()?, right.truth()?))))),
        "==" => same(left, right).map(Expression::Truth),
        "!=" => Ok(Expression::Truth(Truth::Not(Box::new(same(left, right)?)))),
        "<" => compare(Comparison::Less, left, right),
        "<=" => compare(Comparison::AtMost, left, right),
        ">" => compare(Comparison::Less, right, left),
        ">=" => compare(Comparison::AtMost, right, left),
        "+" => arithmetic(Add, left, right),
        "-" => arithmetic(Subtract, left, right),
        "*" => arithmetic(Multiply, left, right),
        _ => arithmetic(Divide, left, right),
    }
}

fn same(left: Placed, right: Placed) -> Result<Truth, RuleError> {
    Ok(match left.expression {
        Expression::Text(left) => Truth::SameText(Box::new((left, right.text()?))),
        Expression::Number(left) => {
            Truth::Compare(Comparison::Equal, Box::new((left, right.number()?)))
        }
        Expression::Truth(left) => Truth::BothOrNeither(Box::new((left, right.truth()?))),
    })
}
